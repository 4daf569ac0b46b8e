# SPDX-License-Identifier: Apache-2.0
"""What the library says as JSON."""


def parsed(text):
    """The value of a text in JSON."""
    import json  # takes milliseconds, and a program that only runs models does without

    return json.loads(text)

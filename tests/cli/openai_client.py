# SPDX-License-Identifier: Apache-2.0
"""openai_client.py URL: talks with a chat server as programs do that use the package openai, and
prints what it got as one JSON object. Run by chat_server_test.py."""

import asyncio
import json
import sys

import openai
import pydantic

MESSAGES = [{"role": "system", "content": "You are brief."},
            {"role": "user", "content": "What is free software?"}]


class Animal(pydantic.BaseModel):
    name: str = pydantic.Field(description="what it is called", max_length=30)
    legs: int | None
    wild: bool


async def streamed(client, model):
    """Two answers at a time, each as a stream."""
    async def one():
        stream = await client.chat.completions.create(
            model=model, messages=MESSAGES, max_tokens=12, temperature=0, stream=True,
            stream_options={"include_usage": True})
        chunks = [chunk async for chunk in stream]
        return {"text": "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices),
                "reason": chunks[-2].choices[0].finish_reason,
                "tokens": chunks[-1].usage.completion_tokens}
    return await asyncio.gather(one(), one())


def refused(call):
    try:
        call()
    except openai.APIStatusError as error:
        return {"type": type(error).__name__, "code": error.code, "param": error.param}
    return None


def main(url):
    client = openai.OpenAI(base_url=url, api_key="key", max_retries=0)
    model = client.models.list().data[0].id
    chat = client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=12, temperature=0,
                                          logprobs=True, top_logprobs=2)
    completion = client.completions.create(model=model, prompt="1, 2, 3, 4, 5,", max_tokens=8,
                                           temperature=0)
    parsed = client.chat.completions.parse(
        model=model, messages=[{"role": "user", "content": "Describe a dog: name, legs, wild."}],
        response_format=Animal, temperature=0, max_tokens=100)
    found = {
        "parsed": parsed.choices[0].message.parsed.model_dump(),
        "model": client.models.retrieve(model).id,
        "text": chat.choices[0].message.content,
        "logprobs": [entry.token for entry in chat.choices[0].logprobs.content],
        "prompt_tokens": chat.usage.prompt_tokens,
        "cached_tokens": chat.usage.prompt_tokens_details.cached_tokens,
        "completion": completion.choices[0].text,
        "streamed": asyncio.run(streamed(openai.AsyncOpenAI(base_url=url, api_key="key"), model)),
        "too_long": refused(lambda: client.chat.completions.create(
            model=model, messages=[{"role": "user", "content": "word " * 4000}])),
        "no_model": refused(lambda: client.chat.completions.create(model="x", messages=MESSAGES)),
        "no_key": refused(lambda: openai.OpenAI(base_url=url, api_key="other").models.list())}
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])

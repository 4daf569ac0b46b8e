# SPDX-License-Identifier: Apache-2.0
"""Decides whether Hearth's outputs are as accurate as LiteRT's.

A float output agrees when it is no farther from that of one of LiteRT's kernel sets than a
tolerance: a part of the output's range (the largest finite absolute value), or as far as LiteRT's
kernel sets are apart. A quantized one may be one step away, or as far as they are apart; and a
float output that is a dequantized one likewise. What is no number has to be that on both sides.
Other integers and booleans have to be equal to one of LiteRT's, or as many may differ as do among
LiteRT's own.

An output that differs from LiteRT's is not Hearth's fault when it is no farther from what
TensorFlow computes in float32 than LiteRT's are.
"""

import dataclasses

import numpy as np

# Parts of the range. Float sums in another order differ in the last bits of each layer. Where
# activations are quantized on the way, a value in the middle between two steps may go either way:
# in a network of dynamic range that is one of the many terms of a sum, and in a network of integers
# a step of a result, of 8 or of 16 bits. Weights of 16-bit floats and dequantized weights quantize
# no activations.
TOLERANCES = {"float32": 2e-5, "float16": 2e-5, "weights": 2e-5, "dynamic": 2e-3,
              "8 bits": 1 / 255, "16 bits": 1 / 4096}
AGREES, NEARER, DIFFERS = "agrees", "nearer", "differs"


def toleranceOf(recipe):
    """The part of an output's range that the rounding of the recipe may account for."""
    if recipe in ("float32", "float16", "sparse"):
        return TOLERANCES["float16" if recipe == "float16" else "float32"]
    for word in ("dynamic", "weights"):
        if word in recipe:
            return TOLERANCES[word]
    return TOLERANCES["16 bits" if "int16" in recipe else "8 bits"]


@dataclasses.dataclass
class Verdict:
    """The verdict on one output."""
    outcome: str
    why: str = ""
    # How far Hearth is from the nearest of LiteRT's kernel sets, how far it may be, and how far
    # these are apart.
    difference: float = 0.0
    limit: float = 0.0
    spread: float = 0.0
    # How far Hearth, and the farthest of LiteRT's kernel sets, are from TensorFlow; None if that
    # cannot be compared.
    hearthError: float | None = None
    peerError: float | None = None


def distance(one, other):
    """The largest difference between two arrays; infinite if they differ in shape, in type, or in
    which numbers are not finite."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return np.inf
    if one.size == 0:
        return 0.0
    if one.dtype.kind == "c":
        return max(distance(one.real, other.real), distance(one.imag, other.imag))
    if one.dtype.kind != "f":
        return float(np.max(np.abs(one.astype(np.float64) - other.astype(np.float64))))
    finite = np.isfinite(one)
    if not np.array_equal(finite, np.isfinite(other)):
        return np.inf
    if not np.array_equal(one[~finite], other[~finite], equal_nan=True):
        return np.inf
    if not finite.any():
        return 0.0
    return float(np.max(np.abs(one[finite].astype(np.float64) - other[finite].astype(np.float64))))


def unequal(one, other):
    """The number of elements that differ between two arrays of one shape and type; all if these
    differ."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return max(one.size, other.size, 1)
    return int(np.count_nonzero(one != other))


def rangeOf(arrays):
    """The largest finite absolute value."""
    largest = 0.0
    for array in arrays:
        values = np.abs(array)
        values = values[np.isfinite(values)]
        if values.size:
            largest = max(largest, float(values.max()))
    return largest


def judge(hearth, peers, recipe, step=(0.0, 0), reference=None):
    """The verdict on one output. `peers` has the output of each kernel set of LiteRT that ran;
    `step` is its scale and zero point, or those of the tensor that it was dequantized from."""
    for peer in peers:
        if (hearth.shape, hearth.dtype) == (peer.shape, peer.dtype):
            break
    else:
        return Verdict(DIFFERS, f"is {describe(hearth)}, and {describe(peers[0])} in LiteRT",
                       np.inf)
    scale, zero = step
    pairs = [(one, other) for number, one in enumerate(peers) for other in peers[:number]]
    if hearth.dtype.kind in "fc" or scale:
        measure = distance
        spread = max([distance(*pair) for pair in pairs], default=0.0)
        if hearth.dtype.kind in "fc":
            allowed = toleranceOf(recipe) * rangeOf(peers)
            if scale:
                # One step, and the rounding error of dividing by the scale.
                allowed = max(allowed if "16" in recipe else 0.0, 1.001 * scale)
        else:
            allowed = 1.0
    else:
        measure, allowed = unequal, 0.0
        spread = max([unequal(*pair) for pair in pairs], default=0)
    limit = max(allowed, spread if np.isfinite(spread) else allowed)
    difference = min(measure(hearth, peer) for peer in peers)
    verdict = Verdict(AGREES, "", float(difference), float(limit), float(spread))
    if difference <= limit:
        return verdict
    verdict.outcome = DIFFERS
    unit = {"f": "", "c": ""}.get(hearth.dtype.kind, " steps" if scale else " elements")
    verdict.why = (f"is {difference:.4g}{unit} from LiteRT, whose kernel sets are "
                   f"{spread:.4g} apart; {limit:.4g} is allowed, in a range of "
                   f"{rangeOf(peers):.4g}")
    if reference is not None and reference.shape == hearth.shape:
        if reference.dtype == np.float32 and hearth.dtype.kind in "iu":
            plain = lambda array: (array.astype(np.float32) - np.float32(zero)) * np.float32(scale)
        else:
            plain = lambda array: array
        verdict.hearthError = measure(plain(hearth), reference)
        verdict.peerError = max(measure(plain(peer), reference) for peer in peers)
        if verdict.hearthError <= verdict.peerError:
            verdict.outcome = NEARER
        verdict.why += (f"; from TensorFlow Hearth is {verdict.hearthError:.4g} and LiteRT "
                        f"{verdict.peerError:.4g}")
    return verdict


def judgeRandom(hearth, peers):
    """The verdict on random numbers: compares shape and type and, if there are many numbers, mean,
    deviation and limits."""
    peer = peers[0]
    if (hearth.shape, hearth.dtype) != (peer.shape, peer.dtype):
        return Verdict(DIFFERS, f"is {describe(hearth)}, and {describe(peer)} in LiteRT", np.inf)
    if hearth.size < 1000:
        return Verdict(AGREES)
    one, other = hearth.astype(np.float64), peer.astype(np.float64)
    # Six standard deviations of the mean of so many numbers; the deviation itself is about as
    # uncertain.
    allowed = 6 * other.std() * np.sqrt(2 / one.size)
    worst = max(abs(one.mean() - other.mean()), abs(one.std() - other.std()))
    if worst <= allowed:
        return Verdict(AGREES, "", float(worst), float(allowed))
    return Verdict(DIFFERS, f"has the mean {one.mean():.4g} and the deviation {one.std():.4g}, and "
                   f"{other.mean():.4g} and {other.std():.4g} in LiteRT", float(worst),
                   float(allowed))


def describe(array):
    return f"{array.dtype}[{','.join(map(str, array.shape))}]"


def sameBytes(one, other):
    """The first output whose bytes differ between two results, or None."""
    for name in sorted({*one, *other}):
        if name not in one or name not in other or describe(one[name]) != describe(other[name]) \
                or one[name].tobytes() != other[name].tobytes():
            return name
    return None


def judgeAll(hearth, peers, recipe, about, references):
    """The worst verdict on the outputs of a model, with the output's name in `why`. Results are
    {RUN/NAME: array}; `peers` has one for each kernel set that ran."""
    order = (AGREES, NEARER, DIFFERS)
    worst = Verdict(AGREES)
    for name, array in sorted(peers[0].items()):
        others = [peer[name] for peer in peers]
        if name not in hearth:
            return Verdict(DIFFERS, f"has no output {name}", np.inf)
        if about.get("isRandom"):
            verdict = judgeRandom(hearth[name], others)
        else:
            verdict = judge(hearth[name], others, recipe,
                            about["steps"].get(name.partition("/")[2], (0.0, 0)),
                            references.get(name))
        verdict.why = verdict.why and f"output {name} {verdict.why}"
        key = lambda one: (order.index(one.outcome), one.difference / (one.limit or 1))
        if key(verdict) > key(worst):
            worst = verdict
    return worst

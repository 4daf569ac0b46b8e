# SPDX-License-Identifier: Apache-2.0
"""Pictures of digits: glyphs of fonts, bent, thickened and blurred until they look handwritten.

A glyph is kept as a map of signed distances to its outline. That makes the thickness of the
strokes a number to choose, and a distorted picture a lookup at displaced coordinates.
"""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

SIDE = 28
# A glyph's larger extent in pixels of the picture, as in the MNIST pictures.
_GLYPH_EXTENT = 20
# Distance maps have this many samples for each pixel and cover this many pixels.
_SAMPLES_PER_PIXEL = 4
_MAP_EXTENT = 36
_MAP_SIDE = _MAP_EXTENT * _SAMPLES_PER_PIXEL
# Size of the grid of random displacements behind the elastic distortion.
_ELASTIC_GRID = 5

# File names of the fonts, without ending. Nothing of the second list is used in training.
TRAINING_FONTS = [
    "DejaVuSans", "DejaVuSans-Bold", "DejaVuSansMono", "DejaVuSansMono-Bold",
    "DejaVuSansMono-Oblique", "DejaVuSansMono-BoldOblique", "DejaVuSerif", "DejaVuSerif-Bold",
    "BecauseWeBuild-Regular", "BecauseWeCreate-Regular", "BecauseWeLearn-Regular",
    "BecauseWeMentor-Regular", "BecauseWeOrganize-Regular", "Breip", "ComicNeue-Bold",
    "ComicNeue-BoldItalic", "ComicNeue-Italic", "ComicNeue-Regular", "DancingScript-Bold",
    "DancingScript-Regular", "Humor-Sans", "TomsonTalks", "dkg", "dkgBI", "dkgBd", "dkgIt",
]
HELD_OUT_FONTS = [
    "BecauseWeConnect-Regular", "LiberationMono-Bold", "LiberationMono-Italic",
    "LiberationMono-Regular", "LiberationSans-Bold", "LiberationSans-Italic",
    "LiberationSans-Regular", "LiberationSerif-Bold", "LiberationSerif-Italic",
    "LiberationSerif-Regular", "Rufscript010",
]
PACKAGES = ["fonts-dejavu-core", "fonts-dejavu-mono", "fonts-bwht", "fonts-breip",
            "fonts-comic-neue", "fonts-dancingscript", "fonts-humor-sans", "fonts-tomsontalks",
            "fonts-dkg-handwriting", "fonts-liberation", "fonts-rufscript"]


def findFonts(names, folders):
    """Paths of the named fonts below `folders`; FileNotFoundError names the packages to install."""
    found = {path.stem: path for folder in folders for path in sorted(Path(folder).rglob("*"))
             if path.suffix in (".ttf", ".otf")}
    missing = [name for name in names if name not in found]
    if missing:
        raise FileNotFoundError(
            f"the fonts {', '.join(missing)} are not below {', '.join(map(str, folders))}; "
            f"they come with: apt-get install {' '.join(PACKAGES)}")
    return [found[name] for name in names]


class Glyphs:
    """The ten digits of several fonts. Thread-compatible; `draw` changes only the generator."""

    def __init__(self, paths):
        rendered = [_render(path, digit) for path in paths for digit in range(10)]
        self.labels = np.tile(np.arange(10), len(paths))
        self.maps = np.stack([_signedDistance(bitmap) for bitmap in rendered])
        inside = self.maps > 0
        # Along a stroke of half-width h the distances inside are spread evenly over 0..h.
        self.halfWidths = 2 * (self.maps * inside).sum((1, 2)) / inside.sum((1, 2))

    def draw(self, generator, count, strength=1.0):
        """(pictures float32 [count, 28, 28] in 0..1, white on black; labels [count]).

        `strength` scales the geometric distortions and the noise.
        """
        chosen = generator.integers(len(self.labels), size=count)
        uniform = lambda low, high: generator.uniform(low, high, count)[:, None, None]
        angle = np.radians(uniform(-15, 15)) * strength
        shear = uniform(-0.3, 0.3) * strength
        scaleX, scaleY = (np.exp(uniform(-0.2, 0.2) * strength) for _ in range(2))
        axis = np.arange(SIDE) - (SIDE - 1) / 2
        column = axis[None, None, :] + uniform(-2.5, 2.5) * strength
        row = axis[None, :, None] + uniform(-2.5, 2.5) * strength
        column, row = (column + shear * row) / scaleX, row / scaleY
        x = np.cos(angle) * column - np.sin(angle) * row
        y = np.sin(angle) * column + np.cos(angle) * row
        amplitude = uniform(0, 1.5) * strength
        x = x + amplitude * _smoothField(generator, count)
        y = y + amplitude * _smoothField(generator, count)

        distance = self._sample(chosen, x, y)
        thickness = uniform(0.7, 2.0) - self.halfWidths[chosen][:, None, None]
        distance += uniform(0.6, 1.0) * thickness
        picture = np.clip(0.5 + distance / uniform(0.8, 2.2), 0, 1) * uniform(0.75, 1.0)
        noise = generator.standard_normal(picture.shape, np.float32)
        picture += uniform(0, 0.08) * strength * noise
        return np.clip(picture, 0, 1).astype(np.float32), self.labels[chosen]

    def _sample(self, chosen, x, y):
        """Distances at displaced positions (pixels from the centre), in pixels; bilinear."""
        limit = _MAP_SIDE - 1.001
        x = np.clip((x + _MAP_EXTENT / 2) * _SAMPLES_PER_PIXEL - 0.5, 0, limit)
        y = np.clip((y + _MAP_EXTENT / 2) * _SAMPLES_PER_PIXEL - 0.5, 0, limit)
        left, top = x.astype(np.int32), y.astype(np.int32)
        x, y = x - left, y - top
        at = (chosen[:, None, None] * _MAP_SIDE + top) * _MAP_SIDE + left
        flat = self.maps.reshape(-1)
        upper = flat[at] * (1 - x) + flat[at + 1] * x
        lower = flat[at + _MAP_SIDE] * (1 - x) + flat[at + _MAP_SIDE + 1] * x
        return upper * (1 - y) + lower * y


def _render(path, digit):
    """The glyph as booleans [_MAP_SIDE, _MAP_SIDE], scaled to its extent and centred by mass."""
    font = ImageFont.truetype(str(path), 200)
    left, top, right, bottom = font.getbbox(str(digit))
    picture = Image.new("L", (right - left, bottom - top))
    ImageDraw.Draw(picture).text((-left, -top), str(digit), font=font, fill=255)
    picture = picture.crop(picture.getbbox())
    scale = _GLYPH_EXTENT * _SAMPLES_PER_PIXEL / max(picture.size)
    size = [max(1, round(extent * scale)) for extent in picture.size]
    bitmap = np.asarray(picture.resize(size, Image.Resampling.BILINEAR)) > 127
    rows, columns = np.nonzero(bitmap)
    top = round(_MAP_SIDE / 2 - rows.mean())
    left = round(_MAP_SIDE / 2 - columns.mean())
    canvas = np.zeros((_MAP_SIDE, _MAP_SIDE), bool)
    canvas[top:top + bitmap.shape[0], left:left + bitmap.shape[1]] = bitmap
    return canvas


def _signedDistance(bitmap):
    """Distance of each sample to the outline in pixels, positive inside."""
    difference = np.sqrt(_squaredDistance(~bitmap)) - np.sqrt(_squaredDistance(bitmap))
    # Between the outermost sample inside and its neighbour outside the values are 1 and -1.
    return ((difference - 0.5 * np.sign(difference)) / _SAMPLES_PER_PIXEL).astype(np.float32)


def _squaredDistance(targets):
    """Squared distance of each sample to the nearest one in `targets`, one axis after the other."""
    index = np.arange(_MAP_SIDE, dtype=np.float32)
    step = np.square(index[:, None] - index[None, :])
    alongRows = np.full(targets.shape, np.float32(1e6))
    for column in range(_MAP_SIDE):
        rows = np.nonzero(targets[:, column])[0]
        if len(rows):
            alongRows[:, column] = step[:, rows].min(1)
    return np.stack([(line[None, :] + step).min(1) for line in alongRows])


def _smoothField(generator, count):
    """Displacements [count, SIDE, SIDE] of standard deviation near 1 that vary slowly."""
    axis = np.linspace(0, _ELASTIC_GRID - 1, SIDE)[:, None] - np.arange(_ELASTIC_GRID)[None, :]
    weights = np.exp(-np.square(axis) / (2 * 0.7**2))
    weights /= np.sqrt(np.square(weights).sum(1, keepdims=True))
    grid = generator.standard_normal((count, _ELASTIC_GRID, _ELASTIC_GRID))
    return weights @ grid @ weights.T

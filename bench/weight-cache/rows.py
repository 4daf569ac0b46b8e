# SPDX-License-Identifier: Apache-2.0
"""The models of the benchmark, and the files of the generated ones."""

import hashlib
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

GENERATOR = Path(__file__).resolve().parents[1] / "workloads" / "generate.py"


@dataclass(frozen=True)
class Row:
    name: str
    words: tuple  # for generate.py
    isLanguageModel: bool = False
    rounds: int = 7  # at most this many; a large model takes minutes for each
    processes: tuple = (1, 2, 4)

    def path(self, cache, say):
        """The file in `cache`. It is written unless one of this version of the generator exists."""
        digest = hashlib.sha256(repr(self.words).encode())
        for source in sorted(GENERATOR.parent.glob("*.py")):
            digest.update(source.read_bytes())
        path = cache / f"start-{self.name}-{digest.hexdigest()[:12]}.tflite"
        if not path.exists():
            cache.mkdir(parents=True, exist_ok=True)
            for outdated in cache.glob(f"start-{self.name}-*.tflite"):
                outdated.unlink()
            say(f"writing {path}")
            kind, *options = self.words
            subprocess.run([sys.executable, GENERATOR, kind, path, *options], check=True,
                           stdout=sys.stderr)
        return path


def _languageModel(name, kind, form, layers=None, **options):
    words = [kind, "--form", form, "--composite"]
    if layers is not None:
        words += ["--layers", str(layers)]
    return Row(name, tuple(words), isLanguageModel=True, **options)


def _diffusion(kind, form, **options):
    return Row(f"{kind}_{form}", (kind, "--form", form, "--composite"), processes=(1, 2), **options)


ROWS = [
    Row("mobilenet_v2_f32", ("mobilenet_v2", "--quant", "f32")),
    Row("mobilenet_v2_i8", ("mobilenet_v2", "--quant", "i8")),
    Row("resnet50_f32", ("resnet50", "--quant", "f32")),
    Row("resnet50_i8", ("resnet50", "--quant", "i8")),
    Row("text_encoder_f32", ("text_encoder", "--form", "f32", "--composite"), processes=(1, 2)),
    _diffusion("unet", "i8"),
    _diffusion("unet", "f16", rounds=3),
    _diffusion("unet", "f32", rounds=3),
    _languageModel("gemma_2_layers_f16", "gemma_2b", "f16", 2, processes=(1, 2), rounds=3),
    _languageModel("gemma_4_layers_i4b32", "gemma_2b", "i4b32", 4, processes=(1, 2)),
    _languageModel("phi_2_8_layers_i8", "phi_2", "i8", 8, processes=(1, 2)),
    _languageModel("gemma_4_layers_i8", "gemma_2b", "i8", 4),
    _languageModel("gemma_2b_i8", "gemma_2b", "i8", rounds=3),
]

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the first inputs of the fuzz targets beside itself, the same bytes at every call. What they are is in
the files *_seeds.py.

Those of model_file_fuzz and container_fuzz come from the program hearth_tflite_corpus, which runs first, since
tflite_call_sequence_fuzz begins with those models; those of served_client_fuzz and reply_fuzz come from
hearth_ipc_corpus.
"""

import pathlib
import struct

import conformance_seeds
import language_seeds
import model_seeds
import store_seeds

FOLDER = pathlib.Path(__file__).resolve().parent


def manifests():
    yield "plain.json", b'{"name": "npu", "library": "libnpu.so", "api_version": 1}'
    yield "more.json", (b'{\n  "api_version": 1, "library": "../lib/lib\\u00e9.so",\n'
                        b'  "name": "a-b_c.9", "x": [1.5e3, null, true, {"y": "z"}]\n}\n')
    yield "optional.json", (b'{"name": "gpu", "library": "g.so", "api_version": 1, "optional": true,\n'
                            b' "asked_for_by": "HEARTH_VULKAN_DEVICE", "needs": {"code": true,\n'
                            b'  "if_present": {"devices": ["/dev/dri/r*"], "read_only": ["/etc/v"]},\n'
                            b'  "variables": ["VK_DRIVER_FILES"]}}\n')


def mailboxes():
    """Steps for mailbox_fuzz.cc: a request with its answer, and pages that a peer has written
    to."""
    call, receive, close = b"\2\7", b"\3", b"\5\0"

    def answer(first, second):
        return b"\4" + struct.pack("<QB", first, second)

    def write(offset, value):
        return b"\0" + struct.pack("<BI", offset, value)

    def writeLong(offset, value):
        return b"\1" + struct.pack("<BQ", offset, value)

    yield "served", call + receive + answer(1, 2) + call + receive + answer(3, 4) + close
    # Words 0 to 3 are the client's number, whether it sleeps, its processor and whether it has left;
    # those of the host are 32 words further.
    yield "sequence", (write(0, 5) + receive + write(32, 1) + call + write(0, 5) + receive
                       + answer(9, 9) + write(0, 0xffffffff) + receive)
    yield "sleeping", write(1, 1) + write(33, 1) + call + receive + answer(0, 0)
    yield "left", call + write(3, 1) + receive + write(3, 0) + receive + write(35, 1) + call
    yield "processor", write(2, 0xffffffff) + write(34, 1) + call + receive + answer(0, 0) + call
    yield "words", (writeLong(2, 2**64 - 1) + writeLong(3, 2**63) + call + receive
                    + writeLong(18, 77) + answer(5, 5) + call)
    yield "closed", call + close + write(3, 0) + write(35, 0) + call + receive + answer(1, 1) + call


SEEDS = {
    "driver_manifest_fuzz": manifests,
    "mailbox_fuzz": mailboxes,
    "nntv_fuzz": conformance_seeds.conformanceFiles,
    "blob_cache_fuzz": store_seeds.blobCaches,
    "bundle_file_fuzz": store_seeds.bundles,
    "cached_model_fuzz": store_seeds.cachedModels,
    "kept_files_fuzz": store_seeds.keptFiles,
    "packing_map_fuzz": store_seeds.driverPlans,
    "prefix_block_fuzz": store_seeds.prefixHeads,
    "saved_compilation_fuzz": store_seeds.savedCompilations,
    "store_file_fuzz": store_seeds.storeFiles,
    "vulkan_plan_fuzz": store_seeds.gpuPlans,
    "call_sequence_fuzz": model_seeds.callSequences,
    "delegate_graph_fuzz": model_seeds.delegateGraphs,
    "input_file_fuzz": model_seeds.inputFiles,
    "metadata_fuzz": model_seeds.metadata,
    "packed_strings_fuzz": model_seeds.packedStrings,
    "sentencepiece_model_fuzz": model_seeds.sentencepieceModels,
    "tflite_call_sequence_fuzz": model_seeds.tfliteCallSequences,
    "chat_request_fuzz": language_seeds.chatRequests,
    "chat_template_fuzz": language_seeds.chatTemplates,
    "executor_metadata_fuzz": language_seeds.executorMetadata,
    "json_schema_fuzz": language_seeds.jsonSchemas,
    "llm_metadata_fuzz": language_seeds.languageMetadata,
    "sentence_piece_fuzz": language_seeds.sentencePieces,
    "tokenizer_json_fuzz": language_seeds.tokenizers,
    "tool_calls_fuzz": language_seeds.toolCalls}


def main():
    for target, seeds in SEEDS.items():
        folder = FOLDER / target
        folder.mkdir(exist_ok=True)
        for name, content in seeds():
            (folder / name).write_bytes(content)


if __name__ == "__main__":
    main()

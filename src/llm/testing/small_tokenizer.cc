// SPDX-License-Identifier: Apache-2.0
#include "llm/testing/small_tokenizer.h"

#include "base/format.h"

namespace hearth::llm {

std::string smallTokenizerJson() {
  std::string vocabulary = R"("<|start|>":0,"<|end|>":1,"Ġ":2)";
  for (char c = 'a'; c <= 'z'; ++c)
    vocabulary += base::formatText(",\"{}\":{}", std::string(1, c), SmallTokens::kA + (c - 'a'));
  vocabulary += R"(,"he":29,"ll":30,"hell":31,"hello":32,"Ġhello":33)";
  return R"({"version":"1.0","added_tokens":[
    {"id":0,"content":"<|start|>","special":true,"normalized":false},
    {"id":1,"content":"<|end|>","special":true,"normalized":false}],
    "normalizer":null,
    "pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"use_regex":true},
    "decoder":{"type":"ByteLevel"},
    "model":{"type":"BPE","vocab":{)" +
         vocabulary + R"(},
    "merges":["h e",["l","l"],"he ll","hell o",["Ġ","hello"]]}})";
}

}  // namespace hearth::llm

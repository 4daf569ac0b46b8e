// SPDX-License-Identifier: Apache-2.0
// Continues a text with a language model: generate_tokens MODEL TOKEN... [--count N] [--threads N]
// [--json]. The model has the signatures `prefill` (a fixed number of tokens at once) and `decode`
// (one token, gives `logits`), which read and write the same tensors kv_cache_*. Prints the numbers
// of the most likely tokens; the conversion of text to tokens is not part of such a file.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "hearth/hearth.hpp"

namespace {

using Clock = std::chrono::steady_clock;

double millisecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// Kilobytes that the kernel counts for this process under `key`.
uint64_t memoryKib(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.compare(0, key.size(), key) == 0) return std::stoull(line.substr(key.size() + 1));
  return 0;
}

// Memory of zeros. Pages that are never used take no memory: a cache has room for more tokens than
// most texts have.
struct Cache {
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> memory;
  size_t size = 0;

  // Tensors that have one name in both signatures must have one size.
  void* take(size_t bytes) {
    if (memory == nullptr) {
      memory.reset(std::calloc(1, bytes));
      if (memory == nullptr) throw std::bad_alloc();
      size = bytes;
    }
    if (bytes != size) throw std::runtime_error("The signatures have caches of different sizes.");
    return memory.get();
  }
};
using Caches = std::map<std::string, Cache>;

// One signature, which runs on the caches that all signatures share.
class Signature {
 public:
  Signature(hearth::Compilation compilation, Caches* caches)
      : compilation_(std::move(compilation)), execution_(compilation_.createExecution()) {
    const auto isCache = [](const hearth::TensorInfo& tensor) {
      return tensor.name.rfind("kv_cache", 0) == 0;
    };
    const std::vector<hearth::TensorInfo> inputs = compilation_.inputs();
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (isCache(inputs[i])) {
        length_ = inputs[i].dimensions.at(1);
        execution_.setInput(i, (*caches)[inputs[i].name].take(inputs[i].byteSize),
                            inputs[i].byteSize);
        continue;
      }
      std::vector<int32_t>& numbers = inputs[i].name == "tokens" ? tokens_ : positions_;
      numbers.resize(inputs[i].byteSize / sizeof(int32_t));
      execution_.setInput(i, numbers);
    }
    const std::vector<hearth::TensorInfo> outputs = compilation_.outputs();
    for (size_t i = 0; i < outputs.size(); ++i) {
      // The cache is written where it is read, so nothing is copied.
      if (isCache(outputs[i])) {
        execution_.setOutput(i, caches->at(outputs[i].name).take(outputs[i].byteSize),
                             outputs[i].byteSize);
      } else {
        logits_.resize(outputs[i].byteSize / sizeof(float));
        execution_.setOutput(i, logits_);
      }
    }
  }

  // Number of tokens that the signature takes at once.
  size_t size() const { return tokens_.size(); }
  // Number of tokens for which the caches have room.
  size_t length() const { return length_; }
  const hearth::Compilation& compilation() const { return compilation_; }

  // Tokens from `begin` on, the first of them at `position`. If there are fewer than the signature
  // takes, the rest is filled up; its entries in the cache are overwritten before they are read.
  void run(const std::vector<int32_t>& tokens, size_t begin, size_t position) {
    for (size_t i = 0; i < size(); ++i) {
      tokens_[i] = begin + i < tokens.size() ? tokens[begin + i] : 0;
      positions_[i] = static_cast<int32_t>(position + i);
    }
    execution_.run();
  }
  int32_t mostLikely() const {
    return static_cast<int32_t>(std::max_element(logits_.begin(), logits_.end()) - logits_.begin());
  }

 private:
  hearth::Compilation compilation_;
  std::vector<int32_t> tokens_;
  std::vector<int32_t> positions_;
  std::vector<float> logits_;
  size_t length_ = 0;
  hearth::Execution execution_;  // uses the memory above
};

// The median of all times except the first, if there are others.
double steady(std::vector<double> times) {
  if (times.size() < 2) return times.empty() ? 0 : times[0];
  std::sort(times.begin() + 1, times.end());
  return times[(times.size() + 1) / 2];
}

}  // namespace

int main(int argc, char** argv) try {
  std::vector<int32_t> tokens;
  size_t count = 16;
  size_t prefills = 1;
  bool isJson = false;
  hearth::CompileOptions options;
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--json") {
      isJson = true;
    } else if ((word == "--count" || word == "--threads" || word == "--prefills") && i + 1 < argc) {
      const unsigned long number = std::stoul(argv[++i]);
      if (word == "--count") count = number;
      if (word == "--threads") options.threads = static_cast<uint32_t>(number);
      if (word == "--prefills") prefills = number;  // for measurements: the same again
    } else {
      tokens.push_back(std::stoi(word));
    }
  }
  if (tokens.empty()) {
    std::cerr << "usage: generate_tokens MODEL TOKEN... [--count N] [--threads N] [--json]\n";
    return 2;
  }

  const Clock::time_point begin = Clock::now();
  const hearth::Model model(argv[1]);
  std::vector<hearth::Compilation> compilations =
      model.compileSignatures({"prefill", "decode"}, options);
  Caches caches;
  Signature prefill(std::move(compilations[0]), &caches);
  Signature decode(std::move(compilations[1]), &caches);
  const double readyMs = millisecondsSince(begin);
  const uint64_t peakAtStart = memoryKib("VmHWM");
  if (tokens.size() + count > decode.length() || tokens.size() > decode.length() - prefill.size())
    throw std::runtime_error("The caches have room for " + std::to_string(decode.length()) +
                             " tokens.");

  // All tokens except the last fill the caches; the last one gives the first new token.
  const size_t known = tokens.size() - 1;
  std::vector<double> prefillMs;
  for (size_t round = 0; round < prefills; ++round) {
    for (size_t at = 0; at < known; at += prefill.size()) {
      const Clock::time_point start = Clock::now();
      prefill.run(tokens, at, at);
      prefillMs.push_back(millisecondsSince(start));
    }
  }
  std::vector<double> decodeMs;
  for (size_t i = 0; i < count; ++i) {
    const Clock::time_point start = Clock::now();
    decode.run(tokens, tokens.size() - 1, tokens.size() - 1);
    tokens.push_back(decode.mostLikely());
    decodeMs.push_back(millisecondsSince(start));
    if (!isJson) std::cout << tokens.back() << ' ' << std::flush;
  }
  if (!isJson) {
    std::cout << '\n';
    std::cerr << "ready after " << readyMs << " ms, prefill " << steady(prefillMs) << " ms for "
              << prefill.size() << " tokens, " << 1000 / steady(decodeMs) << " tokens/s\n";
    return 0;
  }
  std::cout << "{\"prepare_ms\": " << readyMs
            << ", \"prefill\": " << prefill.compilation().startReportJson()
            << ", \"decode\": " << decode.compilation().startReportJson()
            << ", \"first_prefill_ms\": " << (prefillMs.empty() ? 0 : prefillMs[0])
            << ", \"prefill_ms\": " << steady(prefillMs)
            << ", \"first_decode_ms\": " << (decodeMs.empty() ? 0 : decodeMs[0])
            << ", \"decode_ms\": " << steady(decodeMs)
            << ", \"start_peak_rss_kib\": " << peakAtStart
            << ", \"peak_rss_kib\": " << memoryKib("VmHWM")
            << ", \"anonymous_rss_kib\": " << memoryKib("RssAnon") << ", \"tokens\": [";
  for (size_t i = known + 1; i < tokens.size(); ++i)
    std::cout << (i == known + 1 ? "" : ", ") << tokens[i];
  std::cout << "]}\n";
  return 0;
} catch (const std::exception& exception) {
  std::cerr << "generate_tokens: " << exception.what() << '\n';
  return 1;
}

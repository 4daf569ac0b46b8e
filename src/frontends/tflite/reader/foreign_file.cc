// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/reader/foreign_file.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "frontends/tflite/reader/text.h"

namespace hearth::tflite {
namespace {

using Bytes = std::span<const uint8_t>;
using namespace std::string_view_literals;

constexpr size_t kHead = 4096;

constexpr const char* kSavedModel =
    "It is a SavedModel of TensorFlow. tf.lite.TFLiteConverter.from_saved_model(folder) converts "
    "it.";
constexpr const char* kKeras =
    "It is a model of Keras. tf.lite.TFLiteConverter.from_keras_model(model) converts it.";
constexpr const char* kPyTorch =
    "It is a file of PyTorch. ai-edge-torch converts models of PyTorch.";
constexpr const char* kOnnx = "It is a model in the format ONNX. onnx2tf converts it.";

// Files that begin with a fixed text.
struct Signature {
  std::string_view begin;
  size_t offset;
  const char* text;
};

constexpr std::array kSignatures = {
    Signature{"version https://git-lfs.github.com/spec/"sv, 0,
              "It is a pointer of Git LFS, which stands for the model. \"git lfs pull\" fetches "
              "the model itself."},
    Signature{"\x89HDF\r\n\x1a\n"sv, 0,
              "It is a file in the format HDF5, as which Keras stores models (.h5). "
              "tf.lite.TFLiteConverter.from_keras_model(model) converts such a model."},
    Signature{"GGUF"sv, 0,
              "It is a model in the format GGUF, for llama.cpp. Take the model in the format "
              ".tflite, .task or .litertlm."},
    Signature{"ET12"sv, 4,
              "It is a program of ExecuTorch (.pte). ai-edge-torch converts models "
              "of PyTorch to .tflite."},
    Signature{"\x93NUMPY"sv, 0, "It is an array of NumPy, an input and no model."},
    Signature{"\x89PNG\r\n\x1a\n"sv, 0,
              "It is a picture in the format PNG, an input and no model."},
    Signature{"\xff\xd8\xff"sv, 0, "It is a picture in the format JPEG, an input and no model."},
    Signature{"\x1f\x8b"sv, 0, "It is compressed by gzip. Unpack it first, with gunzip or tar."},
    Signature{"\x28\xb5\x2f\xfd"sv, 0,
              "It is compressed by Zstandard. Unpack it first, with zstd -d."},
    Signature{"\xfd\x37zXZ\x00"sv, 0, "It is compressed by xz. Unpack it first, with unxz or tar."},
    Signature{"BZh"sv, 0, "It is compressed by bzip2. Unpack it first, with bunzip2 or tar."},
    Signature{"7z\xbc\xaf\x27\x1c"sv, 0, "It is an archive of 7-Zip. Unpack it first."},
    Signature{"ustar"sv, 257, "It is a tar archive. Unpack it first, with tar."},
};

bool beginsWith(Bytes bytes, std::string_view text, size_t offset = 0) {
  return bytes.size() >= offset && bytes.size() - offset >= text.size() &&
         std::ranges::equal(bytes.subspan(offset, text.size()), text, {}, {},
                            [](char c) { return static_cast<uint8_t>(c); });
}

bool isText(Bytes bytes) {
  return std::ranges::all_of(bytes, [](uint8_t byte) {
    return byte >= 0x80 || (byte >= ' ' && byte != 0x7f) || byte == '\n' || byte == '\r' ||
           byte == '\t';
  });
}

// The first line, cut to some tens of bytes: a server's error message is often the whole file.
std::string firstLine(std::string_view text) {
  constexpr size_t kMost = 60;
  text = text.substr(0, text.find_first_of("\r\n"));
  if (text.size() <= kMost) return cleanText(text);
  size_t end = kMost;
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xc0) == 0x80) --end;
  return cleanText(text.substr(0, end)) + "…";
}

std::string textFileText(std::string_view text) {
  std::string lower(text.substr(0, 512));
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  const size_t begin = lower.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (begin == std::string::npos) return "It holds nothing but white space.";
  lower.erase(0, begin);
  if (lower.starts_with("<!doctype html") || lower.starts_with("<html"))
    return "It is a web page (HTML): the download gave a page in place of the model. Look at it in "
           "a browser, and download the file itself.";
  return "It is a text that begins with \"" + firstLine(text.substr(begin)) +
         "\"; perhaps a download went wrong.";
}

// A number of Protocol Buffers' variable length; nothing if it does not end.
bool skipNumber(Bytes bytes, size_t* at, uint64_t* value) {
  *value = 0;
  for (unsigned shift = 0; shift < 64 && *at < bytes.size(); shift += 7) {
    const uint8_t byte = bytes[(*at)++];
    *value |= uint64_t{byte & 0x7fu} << shift;
    if ((byte & 0x80) == 0) return true;
  }
  return false;
}

// Models of ONNX and SavedModels are messages that begin with the number of their version; it is
// 1 for a SavedModel, and at least 3 in the files of ONNX.
std::string protocolBufferText(Bytes bytes) {
  constexpr uint8_t kFirstNumber = 1 << 3;
  constexpr uint64_t kMaxVersion = 100;
  size_t at = 1;
  uint64_t version = 0;
  if (bytes.empty() || bytes[0] != kFirstNumber || !skipNumber(bytes, &at, &version) ||
      version == 0 || version > kMaxVersion || at >= bytes.size())
    return "";
  const uint8_t next = bytes[at];
  constexpr uint8_t kText = 2;
  if (version == 1) return next == (2 << 3 | kText) ? kSavedModel : "";
  // The producer's name, the graph or the operator sets follow.
  for (const int field : {2, 7, 8})
    if (next == (field << 3 | kText)) return kOnnx;
  return "";
}

bool isPickle(Bytes bytes) {
  constexpr uint8_t kProtocol = 0x80;
  return bytes.size() > 2 && bytes[0] == kProtocol && bytes[1] >= 2 && bytes[1] <= 5;
}

// The length of a JSON text in 8 bytes, and that text.
bool isSafetensors(Bytes bytes) {
  uint64_t length = 0;
  if (bytes.size() < 10) return false;
  for (unsigned i = 0; i < 8; ++i) length |= uint64_t{bytes[i]} << (8 * i);
  return length < uint64_t{1} << 32 && bytes[8] == '{' && bytes[9] == '"';
}

}  // namespace

std::string foreignFileText(Bytes bytes) {
  for (const Signature& signature : kSignatures)
    if (beginsWith(bytes, signature.begin, signature.offset)) return signature.text;
  const Bytes head = bytes.first(std::min(bytes.size(), kHead));
  if (const std::string text = protocolBufferText(head); !text.empty()) return text;
  if (isSafetensors(head))
    return "It is a file of weights in the format safetensors, without the model's operations.";
  if (isPickle(head)) return kPyTorch;
  if (std::ranges::all_of(head, [](uint8_t byte) { return byte == 0; }))
    return "It begins with zeros: it was not written to its end. Copy or download it again.";
  if (isText(head)) return textFileText({reinterpret_cast<const char*>(head.data()), head.size()});
  return "";
}

std::string foreignArchiveText(const std::vector<std::string_view>& names) {
  const auto has = [&names](std::string_view name) {
    return std::ranges::any_of(names, [name](std::string_view each) {
      return each == name || (each.ends_with(name) && each[each.size() - name.size() - 1] == '/');
    });
  };
  if (has("model.weights.h5") || (has("config.json") && has("metadata.json"))) return kKeras;
  if (has("data.pkl")) return kPyTorch;
  if (has("saved_model.pb")) return kSavedModel;
  if (!names.empty() &&
      std::ranges::all_of(names, [](std::string_view name) { return name.ends_with(".npy"); }))
    return "It is an archive of NumPy's arrays (.npz), inputs and no model.";
  return "";
}

std::string foreignFolderText(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path + "/saved_model.pb", ignored)) return kSavedModel;
  if (std::filesystem::exists(path + "/data.pkl", ignored)) return kPyTorch;
  return "Name a file in it.";
}

}  // namespace hearth::tflite

// SPDX-License-Identifier: Apache-2.0
#include "llm/model_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/format.h"
#include "base/inflate.h"
#include "hearth/hearth.hpp"
#include "llm/thrown.h"

namespace hearth::llm {
namespace {

constexpr uint64_t kMaxMetadataBytes = uint64_t{16} << 20;
constexpr uint64_t kMaxTokenizerBytes = uint64_t{256} << 20;
constexpr std::string_view kDecoderName = "prefill_decode";
constexpr std::string_view kEmbedderTypes[] = {"tf_lite_embedder", "tf_lite_per_layer_embedder"};

// The members of a `.task` file, and the types that sections of a `.litertlm` file have for them.
struct TaskMember {
  std::string_view name;
  std::string_view type;
};
constexpr TaskMember kTaskMembers[] = {{"TF_LITE_PREFILL_DECODE", "TFLiteModel"},
                                       {"TOKENIZER_MODEL", "SP_Tokenizer"},
                                       {"METADATA", "LlmParameters"}};

struct Section {
  std::string name;
  std::string type;
  std::string modelType;  // as the file says it; mostly empty
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

Result<base::Descriptor> openToRead(const std::string& path) {
  return base::Descriptor::open(path, O_RDONLY | O_NONBLOCK);
}

Status checkSize(const std::string& path, uint64_t size, uint64_t limit) {
  if (size <= limit) return {};
  return fail(ErrorCode::kBadData, "A section of {} has {} bytes; at most {} are read.", path, size,
              limit);
}

Result<std::vector<uint8_t>> readBytes(const std::string& path, int file, uint64_t offset,
                                       uint64_t size) {
  std::vector<uint8_t> bytes(size);
  for (uint64_t done = 0; done < size;) {
    const ssize_t got =
        pread(file, bytes.data() + done, size - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return std::unexpected(base::errnoError(errno, base::formatText("read of {}", path)));
    if (got == 0) return fail(ErrorCode::kIo, "The file {} shrinks while it is read.", path);
    done += static_cast<uint64_t>(got);
  }
  return bytes;
}

Result<std::vector<Section>> sectionsOf(const std::string& path) {
  HEARTH_ASSIGN(const std::string text,
                returned([&]() -> Result<std::string> { return describeContainer(path); }));
  // Written by the library.
  const auto description = nlohmann::json::parse(text);
  const bool isTask = description["format"] == "zip";
  if (!isTask && description["format"] != "litertlm")
    return fail(
        ErrorCode::kUnsupported,
        "{} is no .litertlm file and no .task file: it has no tokenizer and no metadata of a "
        "language model.",
        path);
  std::vector<Section> sections;
  for (const auto& part : description["parts"]) {
    if (isTask) {
      const auto member =
          std::ranges::find(kTaskMembers, part["name"].get<std::string>(), &TaskMember::name);
      if (member == std::end(kTaskMembers)) continue;
      if (part["type"] != "stored")
        return fail(ErrorCode::kUnsupported, "{} of {} is compressed, which is not supported.",
                    member->name, path);
      sections.push_back({std::string(member->name), std::string(member->type), "", part["offset"],
                          part["bytes"]});
      continue;
    }
    std::string modelType;
    for (const auto& item : part["metadata"])
      if (item["key"] == "model_type") modelType = item["value"].get<std::string>();
    sections.push_back(
        {part["name"], part["type"], std::move(modelType), part["offset"], part["bytes"]});
  }
  return sections;
}

Result<TokenizerTables::Found> tokenizerOf(const std::string& path, const Section& section,
                                           const TokenizerTables& tables) {
  if (section.type != "HF_Tokenizer_Zlib" && section.type != "SP_Tokenizer")
    return fail(ErrorCode::kUnsupported,
                "The tokenizer of {} is of the type {}, which is not supported; --tokenizer names "
                "another one in its place.",
                path, section.type);
  HEARTH_TRY(checkSize(path, section.bytes, kMaxTokenizerBytes));
  HEARTH_ASSIGN(const base::Descriptor file, openToRead(path));
  return tables.tokenizer(
      section.type, cache::ContentSource::of(file.get(), section.offset, section.bytes),
      [&] { return readBytes(path, file.get(), section.offset, section.bytes); },
      [&](std::span<const uint8_t> bytes) -> Result<std::vector<uint8_t>> {
        if (section.type == "SP_Tokenizer") return Tokenizer::tableOfSentencePiece(bytes);
        HEARTH_ASSIGN(const std::string json, unpackTokenizer(bytes));
        return Tokenizer::tableOfJson(json);
      });
}

Result<std::vector<uint8_t>> readMetadata(const std::string& path, const Section& section) {
  HEARTH_TRY(checkSize(path, section.bytes, kMaxMetadataBytes));
  HEARTH_ASSIGN(const base::Descriptor file, openToRead(path));
  return readBytes(path, file.get(), section.offset, section.bytes);
}

// The table of a `tokenizer.json` or of a model of SentencePiece.
Result<std::vector<uint8_t>> tableOfFile(std::span<const uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const size_t begin = text.find_first_not_of(" \t\r\n");
  // A model of SentencePiece begins with the size of its first piece, which is short.
  const bool isJson = begin != std::string_view::npos && text[begin] == '{';
  return isJson ? Tokenizer::tableOfJson(text) : Tokenizer::tableOfSentencePiece(bytes);
}

}  // namespace

Result<std::string> unpackTokenizer(std::span<const uint8_t> section) {
  constexpr size_t kSizeBytes = 8;
  if (section.size() < kSizeBytes)
    return fail(ErrorCode::kBadData, "The section of the tokenizer has {} bytes.", section.size());
  uint64_t size = 0;
  for (size_t i = kSizeBytes; i-- > 0;) size = size << 8 | section[i];
  if (size > kMaxTokenizerBytes)
    return fail(ErrorCode::kBadData, "The tokenizer has {} bytes; at most {} are read.", size,
                kMaxTokenizerBytes);
  auto json = base::unpackZlib(section.subspan(kSizeBytes), size);
  if (!json)
    return std::unexpected(
        std::move(json.error()).addContext("while unpacking the section of the tokenizer"));
  return json;
}

namespace {

Result<TokenizerTables::Found> tokenizerOfFile(const std::string& path,
                                               const TokenizerTables& tables) {
  struct stat status{};
  if (stat(path.c_str(), &status) != 0)
    return std::unexpected(base::errnoError(errno, base::formatText("stat of {}", path)));
  if (!S_ISREG(status.st_mode)) return fail(ErrorCode::kBadData, "{} is not a regular file.", path);
  const auto size = static_cast<uint64_t>(status.st_size);
  HEARTH_TRY(checkSize(path, size, kMaxTokenizerBytes));
  HEARTH_ASSIGN(const base::Descriptor file, openToRead(path));
  return tables.tokenizer(
      "file", cache::ContentSource::of(file.get(), 0, size),
      [&] { return readBytes(path, file.get(), 0, size); }, tableOfFile);
}

}  // namespace

Result<Tokenizer> readTokenizerFile(const std::string& path, const TokenizerTables& tables) {
  HEARTH_ASSIGN(TokenizerTables::Found found, tokenizerOfFile(path, tables));
  return std::move(found.tokenizer);
}

Result<ModelFile> readModelFile(const std::string& path, const std::string& tokenizerPath,
                                const TokenizerTables& tables) {
  HEARTH_ASSIGN(const std::vector<Section> sections, sectionsOf(path));
  ModelFile file;
  file.path = path;
  bool hasMetadata = false;
  for (const Section& section : sections) {
    const bool isEmbedder = std::ranges::contains(kEmbedderTypes, section.modelType);
    if (section.type == "TFLiteModel" && isEmbedder)
      file.embedders.push_back(section.name);
    else if (section.type == "TFLiteModel" && (file.part.empty() || section.name == kDecoderName))
      file.part = section.name;
    if (section.type == "LlmMetadataProto" && !std::exchange(hasMetadata, true)) {
      HEARTH_ASSIGN(const std::vector<uint8_t> bytes, readMetadata(path, section));
      HEARTH_ASSIGN(file.metadata, readLlmMetadata(bytes));
    }
    if (section.type == "LlmParameters") {
      HEARTH_ASSIGN(const std::vector<uint8_t> bytes, readMetadata(path, section));
      HEARTH_ASSIGN(file.metadata, readTaskMetadata(bytes));
    }
    if (section.type == "ExecutorMetadataProto") {
      HEARTH_ASSIGN(const std::vector<uint8_t> bytes, readMetadata(path, section));
      HEARTH_ASSIGN(file.executor, readExecutorMetadata(bytes));
    }
    const bool isTokenizer = section.type.contains("Tokenizer");
    if (isTokenizer && !file.tokenizer && tokenizerPath.empty()) {
      HEARTH_ASSIGN(auto found, tokenizerOf(path, section, tables));
      file.tokenizer = std::move(found.tokenizer);
      file.table = found.table;
    }
  }
  if (!tokenizerPath.empty()) {
    HEARTH_ASSIGN(auto found, tokenizerOfFile(tokenizerPath, tables));
    file.tokenizer = std::move(found.tokenizer);
    file.table = found.table;
  }
  return file;
}

}  // namespace hearth::llm

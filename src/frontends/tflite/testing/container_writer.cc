// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/testing/container_writer.h"

#include <algorithm>

#include "frontends/tflite/testing/sample_models.h"

namespace hearth::tflite {
namespace {

using Bytes = std::vector<uint8_t>;

// Little-endian numbers, one after the other.
class Record {
 public:
  template <typename T>
  Record& put(T number) {
    for (size_t i = 0; i < sizeof(T); ++i)
      bytes_.push_back(static_cast<uint8_t>(static_cast<uint64_t>(number) >> (8 * i)));
    return *this;
  }
  Record& text(const std::string& text) {
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    return *this;
  }
  Record& zeros(size_t count) {
    bytes_.resize(bytes_.size() + count);
    return *this;
  }
  Record& append(const Bytes& bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  size_t size() const { return bytes_.size(); }
  const Bytes& bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

constexpr uint32_t kElsewhere = 0xFFFFFFFF;
constexpr uint16_t kZip64Field = 1;

// Writes sizes in the form of the local header and of the directory; `offset` is in the directory
// only.
void putSizes(Record* to, uint64_t size, uint64_t plainSize, bool isZip64) {
  to->put(isZip64 ? kElsewhere : static_cast<uint32_t>(size));
  to->put(isZip64 ? kElsewhere : static_cast<uint32_t>(plainSize));
}

}  // namespace

std::vector<uint8_t> zipOf(const std::vector<ZipMember>& members, const ZipOptions& options) {
  constexpr size_t kLocalHeaderSize = 30;
  Record archive;
  Record directory;
  for (const ZipMember& member : members) {
    const uint64_t size = member.bytes.size();
    // As in MediaPipe's writer, gaps lie before the headers and not in their extra fields.
    Record local64;
    if (options.isZip64)
      local64.put(kZip64Field).put(uint16_t{16}).put(member.plainSize.value_or(size)).put(size);
    while ((archive.size() + kLocalHeaderSize + member.name.size() + local64.size()) %
               options.alignment !=
           0)
      archive.zeros(1);
    const uint64_t offset = options.offset + archive.size();
    archive.put(0x04034b50u).put(uint16_t{45}).put(member.flags).put(member.method);
    const uint64_t plainSize = member.plainSize.value_or(size);
    archive.put(uint32_t{0}).put(member.crc);  // time and check sum
    putSizes(&archive, size, plainSize, options.isZip64);
    archive.put(static_cast<uint16_t>(member.name.size()));
    archive.put(static_cast<uint16_t>(local64.size()));
    archive.text(member.name).append(local64.bytes()).append(member.bytes);

    Record directory64;
    if (options.isZip64)
      directory64.put(kZip64Field).put(uint16_t{24}).put(plainSize).put(size).put(offset);
    directory.put(0x02014b50u).put(uint16_t{45}).put(uint16_t{45});
    directory.put(member.flags).put(member.method).put(uint32_t{0}).put(member.crc);
    putSizes(&directory, size, plainSize, options.isZip64);
    directory.put(static_cast<uint16_t>(member.name.size()));
    directory.put(static_cast<uint16_t>(directory64.size()));
    directory.zeros(10);  // comment, disk and attributes
    directory.put(options.isZip64 ? kElsewhere : static_cast<uint32_t>(offset));
    directory.text(member.name).append(directory64.bytes());
  }
  const uint64_t begin = options.offset + archive.size();
  const uint64_t size = directory.size();
  archive.append(directory.bytes());
  const auto count = static_cast<uint16_t>(members.size());
  if (options.isZip64) {
    const uint64_t end = options.offset + archive.size();
    archive.put(0x06064b50u).put(uint64_t{44}).put(uint16_t{45}).put(uint16_t{45});
    archive.put(uint32_t{0}).put(uint32_t{0}).put(uint64_t{count}).put(uint64_t{count});
    archive.put(size).put(begin);
    archive.put(0x07064b50u).put(uint32_t{0}).put(end).put(uint32_t{1});
  }
  archive.put(0x06054b50u).put(uint16_t{0}).put(uint16_t{0}).put(count).put(count);
  archive.put(options.isZip64 ? kElsewhere : static_cast<uint32_t>(size));
  archive.put(options.isZip64 ? kElsewhere : static_cast<uint32_t>(begin));
  archive.put(uint16_t{0});
  return archive.bytes();
}

std::unique_ptr<litertlm::EntryT> textEntry(const std::string& key, const std::string& text) {
  auto entry = std::make_unique<litertlm::EntryT>();
  entry->key = key;
  litertlm::TextT value;
  value.value = text;
  entry->value.Set(std::move(value));
  return entry;
}

std::vector<uint8_t> litertlmHeaderOf(const litertlm::HeaderT& header) {
  constexpr size_t kHeaderOffset = 32;
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(litertlm::Header::Pack(builder, &header));
  Record file;
  file.text("LITERTLM").put(uint32_t{1}).put(uint32_t{4}).put(uint32_t{0}).put(uint32_t{0});
  file.put(uint64_t{kHeaderOffset + builder.GetSize()});
  file.append(Bytes(builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()));
  return file.bytes();
}

std::vector<uint8_t> litertlmOf(const std::vector<LitertlmSection>& sections, size_t block) {
  litertlm::HeaderT header;
  header.system = std::make_unique<litertlm::EntriesT>();
  header.system->entries.push_back(textEntry("Authors", "Hearth"));
  header.sections = std::make_unique<litertlm::SectionsT>();
  for (const LitertlmSection& section : sections) {
    auto made = std::make_unique<litertlm::SectionT>();
    made->type = section.type;
    for (const auto& [key, text] : section.metadata) made->entries.push_back(textEntry(key, text));
    // Not zero, which would leave the field out and change the header's size.
    made->begin_offset = 1;
    made->end_offset = 1;
    header.sections->sections.push_back(std::move(made));
  }
  const auto up = [&](uint64_t offset) {
    return (offset + block - 1) / block * block;
  };
  uint64_t offset = up(litertlmHeaderOf(header).size());
  for (size_t i = 0; i < sections.size(); ++i) {
    litertlm::SectionT& section = *header.sections->sections[i];
    section.begin_offset = offset;
    section.end_offset = offset + sections[i].bytes.size();
    offset = up(section.end_offset);
  }
  Bytes file = litertlmHeaderOf(header);
  for (size_t i = 0; i < sections.size(); ++i) {
    file.resize(header.sections->sections[i]->begin_offset);
    file.insert(file.end(), sections[i].bytes.begin(), sections[i].bytes.end());
  }
  return file;
}

std::vector<SampleContainer> sampleContainers() {
  const std::vector<SampleModel> models = sampleModels();
  const auto model = [&](const char* name) {
    return std::ranges::find(models, name, &SampleModel::name)->bytes;
  };
  const Bytes text = {'a', 'b', 'c'};
  const Bytes inner =
      zipOf({{"detector.tflite", model("conv_uint8")}, {"empty.txt", {}}, {"labels.txt", text}});
  Bytes commented = zipOf({{"TF_LITE_PREFILL_DECODE", model("space")}});
  commented[commented.size() - 2] = static_cast<uint8_t>(text.size());
  commented.insert(commented.end(), text.begin(), text.end());
  constexpr size_t kBlock = 64;
  return {{"one.task", zipOf({{"bits.tflite", model("bits")}})},
          {"two.task", zipOf({{"bits.tflite", model("bits")},
                              {"folder/", {}},
                              {"folder/space.tflite", model("space")}})},
          {"zip64.task", zipOf({{"bits.tflite", model("bits")}}, {.isZip64 = true})},
          {"deflated.task", zipOf({{"bits.tflite", text, 8}, {"secret.tflite", text, 0, 1}})},
          {"nested.task", zipOf({{"inner.task", inner}, {"bits.tflite", model("bits")}})},
          {"comment.task", commented},
          {"empty.task", zipOf({})},
          {"model.litertlm",
           litertlmOf({{litertlm::SectionType::LlmMetadataProto, {}, text},
                       {litertlm::SectionType::SP_Tokenizer, {}, text},
                       {litertlm::SectionType::TFLiteModel,
                        {{"model_type", "tf_lite_prefill_decode"}, {"backend_constraint", "cpu"}},
                        model("bits")},
                       {litertlm::SectionType::TFLiteModel,
                        {{"model_type", "tf_lite_embedder"}},
                        model("space")}},
                      kBlock)},
          {"empty.litertlm", litertlmOf({}, kBlock)}};
}

}  // namespace hearth::tflite

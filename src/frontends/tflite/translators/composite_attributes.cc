// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/translators/composite_attributes.h"

#include <flatbuffers/flexbuffers.h>

#include <vector>

namespace hearth::tflite {

Result<CompositeAttributes> CompositeAttributes::parse(std::span<const uint8_t> bytes) {
  CompositeAttributes attributes;
  if (bytes.empty()) return attributes;
  // Without a tracker the verifier would visit shared parts again and again.
  std::vector<uint8_t> tracker;
  if (!flexbuffers::VerifyBuffer(bytes.data(), bytes.size(), &tracker) ||
      !flexbuffers::GetRoot(bytes.data(), bytes.size()).IsMap())
    return fail(ErrorCode::kBadData, "Its {} bytes of attributes are no FlexBuffer with a map.",
                bytes.size());
  attributes.bytes_ = bytes;
  return attributes;
}

std::optional<double> CompositeAttributes::number(const char* name) const {
  if (bytes_.empty()) return std::nullopt;
  const flexbuffers::Reference value =
      flexbuffers::GetRoot(bytes_.data(), bytes_.size()).AsMap()[name];
  if (!value.IsNumeric()) return std::nullopt;
  return value.AsDouble();
}

}  // namespace hearth::tflite

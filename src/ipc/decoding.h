// SPDX-License-Identifier: Apache-2.0
// Reads what the driver interface has out of messages. A peer may send anything: what is not as it
// should be is kBadData, and what is allocated is a small multiple of the message.
#pragma once

#include <capnp/serialize.h>
#include <kj/exception.h>

#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/deadline.h"
#include "base/descriptor.h"
#include "base/result.h"
#include "base/sha256.h"
#include "driver.capnp.h"
#include "graph/model.h"
#include "hal/cache_explainer.h"
#include "hal/device.h"

namespace hearth::ipc {

// What the readers of Cap'n Proto throw is kBadData. `read` returns a Result.
template <typename Read>
std::invoke_result_t<Read&> guarded(Read&& read) {
  try {
    return read();
  } catch (const kj::Exception& exception) {
    return fail(ErrorCode::kBadData, "A message is malformed ({}).",
                exception.getDescription().cStr());
  }
}

// Limits how often and how deep a message is read, so that a short one cannot cost much.
capnp::ReaderOptions readerOptions(std::span<const capnp::word> words);

// Calls `read` with the root of a message. Whatever it keeps of the message it has to copy.
template <typename Root, typename Read>
auto readMessage(std::span<const capnp::word> words, Read&& read)
    -> std::invoke_result_t<Read&, typename Root::Reader> {
  return guarded([&] {
    capnp::FlatArrayMessageReader message(kj::arrayPtr(words.data(), words.size()),
                                          readerOptions(words));
    return read(message.getRoot<Root>());
  });
}

std::string readText(capnp::Text::Reader text);
base::Deadline decodeDeadline(int64_t nanoseconds);

// An error, whatever its code claims to be.
Error readError(schema::Error::Reader from);

// kBadData when there is no such descriptor.
Result<int> findDescriptor(uint32_t index, const std::vector<base::Descriptor>& descriptors);
// The same as a descriptor of its own. Errors: kBadData; kIo when there can be no more.
Result<base::Descriptor> duplicateDescriptor(uint32_t index,
                                             const std::vector<base::Descriptor>& descriptors);

// Gives the model its names; those of things that it does not have are kBadData.
Status readNames(capnp::List<schema::Name>::Reader from, graph::Model* model);

Result<hal::PrepareOptions> readOptions(schema::Preparation::Reader from);
// The files are duplicates of the message's descriptors.
Result<hal::Cache> readCache(schema::CacheFiles::Reader from,
                             const std::vector<base::Descriptor>& descriptors);

// What a device says about itself, once and for all.
struct DeviceDescription {
  std::string name;
  std::string version;
  hal::DeviceType type = hal::DeviceType::kUnknown;
  int64_t featureLevel = 0;
  hal::Capabilities capabilities;
  std::vector<std::string> extensions;
  std::vector<hal::ExtensionOperandType> extensionTypes;
  Result<hal::CacheFileCounts> cacheFiles;
  int process = 0;              // of its host, which a client need not believe
  bool isShared = false;        // whether the host has other clients, too
  uint32_t libraryDevices = 1;  // how many devices the driver's library has, as far as is known
};
// kUnsupported for a host of another version.
Result<DeviceDescription> readDevice(schema::Device::Reader from);
std::vector<hal::OperationSupport> readSupport(capnp::List<schema::Support>::Reader from);
Result<hal::StartReport> readReport(schema::StartReport::Reader from);
Result<hal::CacheVerdict> readVerdict(schema::CacheVerdict::Reader from);
Result<base::Sha256Digest> readDigest(capnp::Data::Reader from);
hal::ExecutionResult readResult(schema::ExecutionResult::Reader from);

template <typename Reader>
graph::Dimensions readDimensions(Reader from) {
  graph::Dimensions dimensions;
  for (const uint32_t dimension : from.getDimensions()) dimensions.push_back(dimension);
  return dimensions;
}

}  // namespace hearth::ipc

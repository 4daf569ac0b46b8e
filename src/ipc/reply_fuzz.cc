// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstring>
#include <memory>

#include "ipc/session.h"

namespace hearth::ipc {
namespace {

// What a client reads of a host's reply, whatever the reply is to.
void readAll(const Frame& frame) {
  (void)readReply(frame, schema::Reply::DONE, [](auto) { return Status(); });
  (void)readReply(frame, schema::Reply::DEVICE,
                  [](auto reply) { return readDevice(reply.getDevice()); });
  (void)readReply(frame, schema::Reply::SUPPORT, [](auto reply) -> Result<size_t> {
    return readSupport(reply.getSupport()).size();
  });
  (void)readReply(frame, schema::Reply::OBJECT,
                  [](auto reply) -> Result<uint64_t> { return reply.getObject(); });
  (void)readReply(frame, schema::Reply::MODEL,
                  [](auto reply) -> Result<uint64_t> { return reply.getModel().getObject(); });
  (void)readReply(frame, schema::Reply::FENCE,
                  [](auto reply) -> Result<uint32_t> { return reply.getFence(); });
  (void)readReply(frame, schema::Reply::REPORT,
                  [](auto reply) { return readReport(reply.getReport()); });
  (void)readReply(frame, schema::Reply::VERDICT,
                  [](auto reply) { return readVerdict(reply.getVerdict()); });
  (void)readReply(frame, schema::Reply::DIGEST,
                  [](auto reply) { return readDigest(reply.getDigest()); });
  (void)readReply(frame, schema::Reply::RESULT, [](auto reply) -> Result<hal::ExecutionResult> {
    return readResult(reply.getResult());
  });
}

}  // namespace
}  // namespace hearth::ipc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const size_t count = size / sizeof(capnp::word);
  const auto words = std::make_unique<capnp::word[]>(count);
  if (count != 0) std::memcpy(words.get(), data, count * sizeof(capnp::word));
  hearth::ipc::readAll(hearth::ipc::Frame::of({words.get(), count}, {}));
  return 0;
}

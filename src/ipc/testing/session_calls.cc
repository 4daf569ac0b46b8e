// SPDX-License-Identifier: Apache-2.0
#include "ipc/testing/session_calls.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hal/cts/model_builder.h"

namespace hearth::ipc {

base::Descriptor pageOfMemory() {
  base::Descriptor file(::memfd_create("file", MFD_CLOEXEC));
  EXPECT_EQ(::ftruncate(file.get(), kPage), 0);
  return file;
}

uint64_t objectOf(const Result<Frame>& frame) {
  EXPECT_TRUE(frame) << frame.error().toString();
  if (!frame) return 0;
  const auto object = readMessage<schema::Reply>(
      frame->words(), [](schema::Reply::Reader reply) -> Result<uint64_t> {
        if (reply.isError()) return std::unexpected(readError(reply.getError()));
        return reply.isModel() ? reply.getModel().getObject() : reply.getObject();
      });
  EXPECT_TRUE(object) << object.error().toString();
  return object.value_or(0);
}

Error errorOf(const Result<Frame>& frame) {
  if (!frame) return frame.error();
  const auto read = readReply(*frame, schema::Reply::DONE, [](auto) { return Status(); });
  return read ? Error(ErrorCode::kIncomplete, "There is no error.") : read.error();
}

uint64_t prepare(Session& session) {
  Outgoing outgoing;
  EXPECT_TRUE(writeModel(hal::cts::addModel({2}), outgoing.request.initPrepare().initModel(),
                         &outgoing.attachments));
  outgoing.request.getPrepare().setPreference(1);
  outgoing.request.getPrepare().setPriority(100);
  outgoing.request.getPrepare().setDeadline(INT64_MAX);
  return objectOf(session.call(outgoing));
}

schema::ExecutionRequest::Builder executionOf(Outgoing& outgoing, uint64_t model, uint64_t length) {
  auto request = outgoing.request.initCreateExecution();
  request.setModel(model);
  request.initMemories(1);
  const auto fill = [&](auto list) {
    for (auto argument : list) {
      argument.setKind(schema::Argument::Kind::MEMORY);
      argument.setLength(length);
    }
  };
  fill(request.initInputs(2));
  fill(request.initOutputs(1));
  return request;
}

Result<Frame> execute(Session& session, uint64_t model, const base::Descriptor& file) {
  Outgoing outgoing;
  auto memory = executionOf(outgoing, model, 8).getMemories()[0];
  memory.setDescriptor(outgoing.attachments.add(file.get()));
  memory.setSize(kPage);
  memory.setIsWritable(true);
  return session.call(outgoing);
}

}  // namespace hearth::ipc

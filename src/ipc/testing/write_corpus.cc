// SPDX-License-Identifier: Apache-2.0
// Writes the first inputs of served_client_fuzz and reply_fuzz, the same bytes at every call.
// usage: hearth_ipc_corpus FOLDER      (tests/corpus)
#include <capnp/serialize.h>

#include <filesystem>
#include <fstream>
#include <iostream>

#include "hal/cts/model_builder.h"
#include "ipc/encoding.h"
#include "ipc/testing/client_messages.h"
#include "ipc/testing/fake_device.h"

namespace hearth::ipc {
namespace {

std::vector<uint8_t> bytesOf(capnp::MessageBuilder& message) {
  const auto words = capnp::messageToFlatArray(message);
  const auto bytes = words.asBytes();
  return {bytes.begin(), bytes.end()};
}

template <typename Root, typename Fill>
std::vector<uint8_t> messageOf(Fill fill) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<Root>();
  root.setCall(7);
  fill(root);
  return bytesOf(message);
}

template <typename Fill>
std::vector<uint8_t> requestOf(Fill fill) {
  return messageOf<schema::Request>(fill);
}

template <typename Fill>
std::vector<uint8_t> replyOf(Fill fill) {
  return messageOf<schema::Reply>(fill);
}

void fillPreparation(schema::Preparation::Builder preparation) {
  Attachments none;
  hal::PrepareOptions options;
  options.driverOptions = {{"name", "value"}};
  writeOptions(options, preparation);
  graph::Model model = hal::cts::addModel({2, 3});
  model.main().name = "main";
  model.main().operands[0].name = "a";
  model.main().operations[0].name = "sum";
  static_cast<void>(writeModel(model, preparation.initModel(), &none));
}

std::vector<uint8_t> prepare() {
  return requestOf([](auto request) { fillPreparation(request.initPrepare()); });
}

void fillMemory(schema::Memory::Builder memory, uint32_t descriptor) {
  memory.setDescriptor(descriptor);
  memory.setSize(4096);
  memory.setIsWritable(true);
}

// `model` is the name that the host gives to the first model.
std::vector<uint8_t> createExecution(uint64_t model, uint32_t descriptor) {
  return requestOf([&](auto request) {
    auto execution = request.initCreateExecution();
    execution.setModel(model);
    fillMemory(execution.initMemories(1)[0], descriptor);
    const auto fill = [](auto arguments) {
      for (auto argument : arguments) {
        argument.setKind(schema::Argument::Kind::MEMORY);
        argument.setLength(24);
        writeDimensions({2, 3}, argument);
      }
    };
    fill(execution.initInputs(2));
    fill(execution.initOutputs(1));
  });
}

std::vector<uint8_t> compute(uint64_t execution) {
  return requestOf([&](auto request) {
    request.initCompute().setExecution(execution);
    request.getCompute().setDeadline(INT64_MAX);
  });
}

class Folder {
 public:
  explicit Folder(const std::filesystem::path& path) : path_(path) {
    std::filesystem::create_directories(path_);
  }
  void write(const std::string& name, const std::vector<uint8_t>& bytes) const {
    std::ofstream file(path_ / name, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }

 private:
  const std::filesystem::path path_;
};

// A RELU in an extension of a driver: its type, its operation and data of its operands.
graph::Model extensionModel() {
  graph::Model model;
  model.extensions = {{2, "com.example"}};
  hal::cts::ModelBuilder builder;
  const auto type = static_cast<graph::OperandType>((2 << 16) | 3);
  const uint32_t in = builder.input(type, {2});
  builder.operation(static_cast<graph::OperationType>(2 << 16), {in}, {builder.output(type, {2})});
  model.subgraphs = builder.model().subgraphs;
  for (graph::Operand& operand : model.main().operands) {
    operand.driverElementSize = 16;
    operand.driverData = {1, 2, 3};
  }
  return model;
}

void writeRequests(const Folder& folder) {
  const auto release = [](schema::Release::Kind kind, uint64_t object) {
    return requestOf([&](auto request) {
      request.initRelease().setKind(kind);
      request.getRelease().setObject(object);
    });
  };
  folder.write("computation.messages", joinMessages({prepare(), createExecution(1, 0), compute(2),
                                                     release(schema::Release::Kind::EXECUTION, 2),
                                                     release(schema::Release::Kind::MODEL, 1)}));
  folder.write("unsealed.messages",
               joinMessages({prepare(), createExecution(1, 1), compute(2), compute(2)}));
  folder.write(
      "mailbox.messages",
      joinMessages({prepare(), createExecution(1, 0), compute(2), requestOf([](auto request) {
                      request.initOpenMailbox().setExecution(2);
                      request.getOpenMailbox().setDescriptor(0);
                    }),
                    requestOf([](auto request) { request.setFetchResult(2); }),
                    requestOf([](auto request) { request.setState(); }),
                    release(schema::Release::Kind::EXECUTION, 2)}));
  folder.write("fenced.messages",
               joinMessages({prepare(), createExecution(1, 0), requestOf([](auto request) {
                               request.initStartFenced().setExecution(2);
                               request.getStartFenced().initFences(1).set(0, 2);
                             }),
                             requestOf([](auto request) { request.setFinishFenced(2); }),
                             release(schema::Release::Kind::EXECUTION, 2)}));
  folder.write(
      "questions.messages",
      joinMessages(
          {requestOf([](auto request) { request.setWarmUp(); }), requestOf([](auto request) {
             Attachments none;
             static_cast<void>(writeModel(hal::cts::convolutionModel(3),
                                          request.initSupportedOperations(), &none));
           }),
           requestOf([](auto request) { fillPreparation(request.initExplainStart()); }), prepare(),
           requestOf([](auto request) { request.initStartReport().setModel(1); }),
           requestOf([](auto request) { request.setFlush(); })}));
  folder.write(
      "extension.messages", joinMessages({requestOf([](auto request) {
        Attachments none;
        static_cast<void>(writeModel(extensionModel(), request.initSupportedOperations(), &none));
      })}));
  const auto copy = [](schema::Copy::Builder to) {
    to.setBuffer(2);
    fillMemory(to.initMemory(), 0);
    to.getMemory().setSize(24);
    writeDimensions({2, 3}, to);
  };
  folder.write("buffer.messages",
               joinMessages({prepare(), requestOf([](auto request) {
                               auto allocation = request.initAllocate();
                               writeDimensions({2, 3}, allocation);
                               auto role = allocation.initRoles(1)[0];
                               role.setModel(1);
                               role.setIsInput(true);
                               role.setFrequency(1.0f);
                             }),
                             requestOf([&](auto request) { copy(request.initCopyFrom()); }),
                             requestOf([&](auto request) { copy(request.initCopyTo()); }),
                             release(schema::Release::Kind::BUFFER, 2)}));
  folder.write("cache.messages", joinMessages({requestOf([](auto request) {
                 auto preparation = request.initPrepareFromCache();
                 hal::PrepareOptions options;
                 writeOptions(options, preparation);
                 auto cache = preparation.initCache();
                 cache.initModel(2).set(0, 1);
                 cache.getModel().set(1, -1);
                 const hal::CacheToken token{1, 2, 3};
                 cache.setToken(kj::arrayPtr(token.data(), token.size()));
               })}));
}

void writeExplanations(const Folder& requests, const Folder& replies) {
  requests.write("explanation.messages",
                 joinMessages({requestOf([](auto request) { request.setCacheBuild(); }),
                               requestOf([](auto request) {
                                 auto preparation = request.initExplainCache();
                                 fillPreparation(preparation);
                                 auto cache = preparation.initCache();
                                 cache.initModel(1).set(0, 0);
                                 cache.initData(1).set(0, 1);
                                 const hal::CacheToken token{1, 2, 3};
                                 cache.setToken(kj::arrayPtr(token.data(), token.size()));
                               })}));
  replies.write("verdict.reply", replyOf([](auto reply) {
                  writeVerdict({false, "unusable", "It is cut off.", false}, reply.initVerdict());
                }));
  replies.write("digest.reply", replyOf([](auto reply) {
                  const base::Sha256Digest digest{1, 2, 3};
                  reply.setDigest(kj::arrayPtr(digest.data(), digest.size()));
                }));
}

void writeReplies(const Folder& folder) {
  const auto fake = std::make_shared<FakeDevice>();
  folder.write("error.reply", replyOf([](auto reply) {
                 writeError(Error(ErrorCode::kBadData, "It is wrong.").addContext("while reading"),
                            reply.initError());
               }));
  folder.write("state.reply", replyOf([](auto reply) {
                 reply.initState().setClients(3);
                 reply.getState().setMemory(4096);
               }));
  folder.write("done.reply", replyOf([](auto reply) { reply.setDone(); }));
  folder.write("object.reply", replyOf([](auto reply) { reply.setObject(9); }));
  folder.write("model.reply", replyOf([](auto reply) {
                 reply.initModel().setObject(9);
                 reply.getModel().setHasFences(true);
               }));
  folder.write("fence.reply", replyOf([](auto reply) { reply.setFence(1); }));
  folder.write("support.reply", replyOf([](auto reply) {
                 writeSupport({{true, "own", ""}, {false, "", "It only adds."}}, reply);
               }));
  folder.write("report.reply", replyOf([&](auto reply) {
                 hal::StartReport report;
                 report.reason = "It is cold.";
                 report.packedBytes = {{"ADD", 5}};
                 report.routedAround = {"avx"};
                 report.slowOperations = {"ADD 0 (TENSOR_FLOAT16): it is a test"};
                 writeReport(report, reply.initReport());
               }));
  folder.write("result.reply", replyOf([](auto reply) {
                 hal::ExecutionResult result;
                 result.status = fail(ErrorCode::kOutputInsufficientSize, "It is too small.");
                 result.outputShapes = {{{2, 3}, false}, {{}, true}};
                 writeResult(result, reply.initResult());
               }));
  folder.write("device.reply", replyOf([&](auto reply) {
                 writeDevice(*fake, reply.initDevice());
                 // The only number that is another one each time.
                 reply.getDevice().setProcess(1);
               }));
}

}  // namespace
}  // namespace hearth::ipc

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: hearth_ipc_corpus FOLDER\n";
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  hearth::ipc::writeRequests(hearth::ipc::Folder(folder / "served_client_fuzz"));
  hearth::ipc::writeReplies(hearth::ipc::Folder(folder / "reply_fuzz"));
  hearth::ipc::writeExplanations(hearth::ipc::Folder(folder / "served_client_fuzz"),
                                 hearth::ipc::Folder(folder / "reply_fuzz"));
  return 0;
}

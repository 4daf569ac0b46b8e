// SPDX-License-Identifier: Apache-2.0
#include "ipc/served_requests.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <thread>
#include <utility>

#include "base/caught.h"
#include "base/log.h"
#include "base/sha256.h"
#include "graph/model_bytes.h"
#include "hal/cache_explainer.h"
#include "ipc/decoding.h"
#include "ipc/encoding.h"
#include "ipc/model_identity.h"
#include "ipc/model_memory.h"
#include "ipc/paged_message.h"
#include "ipc/private_constants.h"
#include "ipc/served_execution.h"
#include "ipc/served_mailbox.h"
#include "ipc/shared_models.h"

namespace hearth::ipc {
namespace {

// The token of a user's cache: another for each user, whatever the client says.
hal::CacheToken tokenOf(uid_t user, const hal::CacheToken& token) {
  base::Sha256 hash;
  hash.update(&user, sizeof user);
  hash.update(token);
  return hash.finish();
}

Result<hal::CacheExplainer*> explainerOf(hal::Device& device) {
  if (auto* const explainer = dynamic_cast<hal::CacheExplainer*>(&device)) return explainer;
  return fail(ErrorCode::kOpFailed, "The driver of {} does not tell what it makes of its files.",
              device.name());
}

std::vector<graph::Operand> outputsOf(const graph::Model& model) {
  std::vector<graph::Operand> outputs;
  for (const uint32_t index : model.main().outputs) outputs.push_back(model.main().operands[index]);
  return outputs;
}

// The bytes of this process that no other one shares; 0 when the kernel does not tell.
uint64_t privateMemory() {
  std::ifstream file("/proc/self/statm");
  uint64_t size = 0;
  uint64_t resident = 0;
  uint64_t shared = 0;
  if (!(file >> size >> resident >> shared) || shared > resident) return 0;
  return (resident - shared) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

// An upper bound of a model's constants; what a driver packs of them has about their size.
uint64_t constantBytes(schema::Model::Reader model) {
  uint64_t bytes = model.getBytes().size();
  for (const schema::Memory::Reader pool : model.getPools())
    bytes += std::min(pool.getSize(), UINT64_MAX - bytes);
  return bytes;
}

}  // namespace

struct ServedRequests::Call {
  Call(schema::Request::Reader from, const std::vector<base::Descriptor>& with, int to,
       const std::shared_ptr<void>& client)
      : request(from), descriptors(with), socket(to), self(client) {}

  const schema::Request::Reader request;
  const std::vector<base::Descriptor>& descriptors;
  const int socket;
  const std::shared_ptr<void>& self;
  PagedMessage message;
  schema::Reply::Builder reply = message.initRoot<schema::Reply>();
  Attachments attachments;  // of the reply
  base::Descriptor fence;   // among them
  // Set with the error that ends the connection.
  bool isViolation = false;

  template <typename... Args>
  std::unexpected<Error> violation(std::format_string<Args...> format, Args&&... args) {
    isViolation = true;
    return fail(ErrorCode::kBadData, format, std::forward<Args>(args)...);
  }

  // The object, which is null for a name that the client does not have: that is a violation.
  template <typename Object>
  Result<std::shared_ptr<Object>> known(std::shared_ptr<Object> object, const char* what) {
    if (object == nullptr) return violation("A client names {} that is not its.", what);
    return object;
  }
};

ServedRequests::ServedRequests(std::shared_ptr<hal::Device> device, HostOptions options, uid_t user,
                               HostState* state, ClientThreads* threads, CommonOfClients common)
    : device_(std::move(device)),
      options_(std::move(options)),
      user_(user),
      state_(*state),
      threads_(*threads),
      memories_(options_.memories, options_.bytes),
      takesTurns_(common.turns != nullptr),
      sharedModels_(std::move(common.models)),
      objects_({options_.objects, options_.mailboxes}) {
  if (takesTurns_) turns_ = common.turns->addClient(user);
}

void ServedRequests::close() {
  turns_.close();
  objects_.close();
}

Status ServedRequests::handle(Frame& frame, int socket, const std::shared_ptr<void>& self) {
  return readMessage<schema::Request>(frame.words(),
                                      [&](schema::Request::Reader request) -> Status {
                                        Call call(request, frame.descriptors(), socket, self);
                                        call.reply.setCall(request.getCall());
                                        return answer(call);
                                      });
}

Status ServedRequests::answer(Call& call) {
  if (call.request.isRelease() && isGreeted_) {
    const schema::Release::Reader given = call.request.getRelease();
    objects_.release(given.getKind(), given.getObject());
    return {};
  }
  const hal::ProgressScope told(&pulse_);
  Status done = base::caught([&] { return guarded([&] { return dispatch(call); }); });
  if (!done && call.isViolation && !call.request.isHello()) return done;
  if (!done) writeError(done.error(), call.reply.initError());
  Status sent = sendMessage(call.socket, call.message, call.attachments.descriptors());
  if (!sent && sent.error().code() == ErrorCode::kUnsupported) {
    PagedMessage message;
    auto reply = message.initRoot<schema::Reply>();
    reply.setCall(call.request.getCall());
    writeError(sent.error(), reply.initError());
    sent = sendMessage(call.socket, message, {});
  }
  if (!sent) return sent;
  return call.isViolation ? done : Status();
}

Status ServedRequests::dispatch(Call& call) {
  const schema::Request::Reader& request = call.request;
  if (!isGreeted_ && !request.isHello())
    return call.violation("A client does not begin with a greeting.");
  switch (request.which()) {
    case schema::Request::HELLO:
      return greet(call);
    case schema::Request::WARM_UP:
      device_->warmUp();
      call.reply.setDone();
      return {};
    case schema::Request::FLUSH:
      device_->flush();
      call.reply.setDone();
      return {};
    case schema::Request::SUPPORTED_OPERATIONS:
      return support(call, request.getSupportedOperations(), false);
    case schema::Request::EXPLAIN_OPERATIONS:
      return support(call, request.getExplainOperations(), true);
    case schema::Request::EXPLAIN_START:
      return explainStart(call, request.getExplainStart());
    case schema::Request::PREPARE:
      return prepare(call, request.getPrepare(), true);
    case schema::Request::PREPARE_FROM_CACHE:
      return prepare(call, request.getPrepareFromCache(), false);
    case schema::Request::START_REPORT:
      return report(call, request.getStartReport());
    case schema::Request::CREATE_EXECUTION:
      return createExecution(call, request.getCreateExecution());
    case schema::Request::COMPUTE:
      return compute(call, request.getCompute());
    case schema::Request::START_FENCED:
      return startFenced(call, request.getStartFenced());
    case schema::Request::FINISH_FENCED:
      return finishFenced(call, request.getFinishFenced());
    case schema::Request::ALLOCATE:
      return allocate(call, request.getAllocate());
    case schema::Request::COPY_TO:
      return copyTo(call, request.getCopyTo());
    case schema::Request::COPY_FROM:
      return copyFrom(call, request.getCopyFrom());
    case schema::Request::OPEN_MAILBOX:
      return openMailbox(call, request.getOpenMailbox());
    case schema::Request::FETCH_RESULT:
      return fetchResult(call, request.getFetchResult());
    case schema::Request::EXPLAIN_CACHE:
      return explainCache(call, request.getExplainCache());
    case schema::Request::CACHE_BUILD:
      return cacheBuild(call);
    case schema::Request::STATE: {
      auto to = call.reply.initState();
      to.setClients(state_.clients);
      to.setMemory(privateMemory());
      return {};
    }
    case schema::Request::RELEASE:
      break;
  }
  return call.violation("A client asks for what this host does not know.");
}

Status ServedRequests::greet(Call& call) {
  const schema::Hello::Reader hello = call.request.getHello();
  if (hello.getVersion() != schema::VERSION || hello.getApiVersion() != hal::kApiVersion) {
    call.isViolation = true;
    return fail(ErrorCode::kUnsupported,
                "The host speaks version {} of the connection and {} of the driver interface, the "
                "client {} and {}.",
                schema::VERSION, hal::kApiVersion, hello.getVersion(), hello.getApiVersion());
  }
  if (device_ == nullptr) {
    call.isViolation = true;
    return fail(ErrorCode::kUnavailableDevice, "{}", options_.whyUnavailable);
  }
  writeDevice(*device_, call.reply.initDevice());
  call.reply.getDevice().setIsShared(options_.isShared);
  call.reply.getDevice().setLibraryDevices(options_.libraryDevices);
  if (hello.getPulse() >= 0) {
    HEARTH_ASSIGN(base::Descriptor socket,
                  duplicateDescriptor(static_cast<uint32_t>(hello.getPulse()), call.descriptors));
    pulse_.connect(std::move(socket));
    call.reply.getDevice().setHasPulse(threads_.stir());
  }
  isGreeted_ = true;
  return {};
}

Result<graph::Model> ServedRequests::readModel(Call& call, schema::Model::Reader from,
                                               ClientMemories* memories) {
  std::vector<memory::PoolRef> pools;
  for (const schema::Memory::Reader memory : from.getPools()) {
    HEARTH_ASSIGN(memory::PoolRef pool, memories->map(memory, call.descriptors));
    pools.push_back(std::move(pool));
  }
  const capnp::Data::Reader bytes = from.getBytes();
  HEARTH_ASSIGN(graph::Model model,
                graph::decodeModel({bytes.begin(), bytes.size()}, std::move(pools)));
  HEARTH_TRY(readNames(from.getNames(), &model));
  if (options_.isShared) HEARTH_TRY(makeConstantsPrivate(&model));
  return model;
}

Result<hal::PrepareOptions> ServedRequests::readOptionsOf(Call& call,
                                                          schema::Preparation::Reader from) const {
  auto options = readOptions(from);
  if (!options) {
    call.isViolation = true;
    return options;
  }
  if (options_.isShared) {
    options->driverOptions.clear();
    options->threads = std::min(options->threads, std::thread::hardware_concurrency());
  }
  return options;
}

Status ServedRequests::support(Call& call, schema::Model::Reader from, bool isExplained) {
  HEARTH_ASSIGN(const graph::Model model, readModel(call, from, &memories_));
  HEARTH_ASSIGN(const auto support, isExplained ? device_->explainOperations(model)
                                                : device_->supportedOperations(model));
  writeSupport(support, call.reply);
  return {};
}

Result<std::shared_ptr<const ServedModel>> ServedRequests::makeModel(
    Call& call, schema::Preparation::Reader from, const hal::PrepareOptions& options,
    hal::Cache cache, bool hasModel, ClientMemories* memories, ModelMemory* memory) {
  auto made = std::make_shared<ServedModel>();
  const memory::BudgetScope scope(memory);
  if (hasModel) {
    HEARTH_ASSIGN(graph::Model model, readModel(call, from.getModel(), memories));
    auto shared = std::make_shared<const graph::Model>(std::move(model));
    made->outputs = outputsOf(*shared);
    made->pools = shared->pools;
    HEARTH_ASSIGN(made->prepared,
                  device_->prepareModel(std::move(shared), options, std::move(cache)));
  } else {
    HEARTH_ASSIGN(made->prepared, device_->prepareModelFromCache(options, std::move(cache)));
  }
  if (made->prepared == nullptr)
    return fail(ErrorCode::kOpFailed, "The driver gives no prepared model.");
  made->bytes = memory->bytes();
  return made;
}

Status ServedRequests::prepare(Call& call, schema::Preparation::Reader from, bool hasModel) {
  HEARTH_ASSIGN(const hal::PrepareOptions options, readOptionsOf(call, from));
  HEARTH_ASSIGN(hal::Cache cache, readCache(from.getCache(), call.descriptors));
  if (options_.isShared) cache.token = tokenOf(user_, cache.token);
  auto entry = std::make_shared<ClientModel>();
  entry->priority = options.priority;
  const unsigned processors = std::max(1u, std::thread::hardware_concurrency());
  entry->threads = options.threads == 0 ? processors : std::min(options.threads, processors);
  entry->memory = std::make_shared<ModelMemory>(memories_);
  if (hasModel) {
    HEARTH_ASSIGN(entry->room, memories_.reserve(constantBytes(from.getModel())));
  }
  std::optional<ModelIdentity> identity;
  if (sharedModels_ != nullptr && !hasModel)
    identity = ModelIdentity::ofCache(from.getCache(), cache.token, options, call.descriptors);
  // A preparation that writes the client's cache files is for this client.
  if (sharedModels_ != nullptr && hasModel && cache.modelFiles.empty() && cache.dataFiles.empty())
    identity = ModelIdentity::ofModel(from.getModel(), options, call.descriptors);
  if (identity) {
    HEARTH_ASSIGN(entry->places, memories_.hold(from.getModel().getPools().size()));
    HEARTH_ASSIGN(auto taken, sharedModels_->take(*identity, options.deadline, [&] {
      return makeModel(call, from, options, std::move(cache), hasModel, &sharedModels_->memories(),
                       entry->memory.get());
    }));
    entry->served = std::move(taken.model);
    entry->isOwn = taken.isOwn;
    if (!entry->isOwn) {
      HEARTH_ASSIGN(entry->others, memories_.reserve(entry->served->bytes));
    }
  } else {
    HEARTH_ASSIGN(entry->served, makeModel(call, from, options, std::move(cache), hasModel,
                                           &memories_, entry->memory.get()));
  }
  const bool hasFences = entry->served->prepared->hasFences();
  HEARTH_ASSIGN(const uint64_t name, objects_.add(std::move(entry)));
  auto model = call.reply.initModel();
  model.setObject(name);
  model.setHasFences(hasFences);
  return {};
}

Status ServedRequests::explainStart(Call& call, schema::Preparation::Reader from) {
  HEARTH_ASSIGN(const hal::PrepareOptions options, readOptionsOf(call, from));
  HEARTH_ASSIGN(graph::Model model, readModel(call, from.getModel(), &memories_));
  HEARTH_ASSIGN(
      const hal::StartReport report,
      device_->explainStart(std::make_shared<const graph::Model>(std::move(model)), options));
  writeReport(report, call.reply.initReport());
  return {};
}

Status ServedRequests::explainCache(Call& call, schema::Preparation::Reader from) {
  HEARTH_ASSIGN(const hal::PrepareOptions options, readOptionsOf(call, from));
  HEARTH_ASSIGN(hal::Cache cache, readCache(from.getCache(), call.descriptors));
  if (options_.isShared) cache.token = tokenOf(user_, cache.token);
  HEARTH_ASSIGN(const graph::Model model, readModel(call, from.getModel(), &memories_));
  HEARTH_ASSIGN(hal::CacheExplainer* const explainer, explainerOf(*device_));
  writeVerdict(explainer->explainCache(model, options, cache), call.reply.initVerdict());
  return {};
}

Status ServedRequests::cacheBuild(Call& call) {
  HEARTH_ASSIGN(const hal::CacheExplainer* const explainer, explainerOf(*device_));
  HEARTH_ASSIGN(const base::Sha256Digest build, explainer->cacheBuild());
  call.reply.setDigest(kj::arrayPtr(build.data(), build.size()));
  return {};
}

Status ServedRequests::report(Call& call, schema::ReportRequest::Reader from) {
  HEARTH_ASSIGN(const auto model, call.known(objects_.model(from.getModel()), "a model"));
  const hal::PreparedModel& prepared = *model->served->prepared;
  hal::StartReport report =
      from.getIsFinal() ? prepared.startReport() : prepared.startReportSoFar();
  if (!model->isOwn) report = reportOfShared(std::move(report));
  writeReport(report, call.reply.initReport());
  return {};
}

Result<hal::Argument> ServedRequests::readArgument(Call& call, schema::Argument::Reader from,
                                                   uint64_t model, bool isInput, uint32_t index,
                                                   const std::vector<memory::PoolRef>& memories,
                                                   ServedExecution* execution) {
  hal::Argument argument;
  argument.offset = from.getOffset();
  argument.length = from.getLength();
  argument.dimensions = readDimensions(from);
  switch (from.getKind()) {
    case schema::Argument::Kind::NO_VALUE:
      return argument;
    case schema::Argument::Kind::NOTHING:
      argument.kind = hal::Argument::Kind::kPointer;
      return argument;
    case schema::Argument::Kind::MEMORY:
      if (from.getMemory() >= memories.size())
        return call.violation("An argument names memory {} of {}.", from.getMemory(),
                              memories.size());
      argument.kind = hal::Argument::Kind::kPool;
      argument.pool = memories[from.getMemory()];
      return argument;
    case schema::Argument::Kind::BUFFER:
      break;
    default:
      return call.violation("The kind {} of an argument is unknown.",
                            static_cast<unsigned>(from.getKind()));
  }
  std::shared_ptr<ClientBuffer> buffer = objects_.buffer(from.getBuffer());
  if (buffer == nullptr)
    return fail(ErrorCode::kBadData, "The buffer of {} {} is unknown.",
                isInput ? "input" : "output", index);
  if (!buffer->roles.contains({model, isInput, index}))
    return fail(ErrorCode::kBadData, "The buffer is not for {} {} of this model.",
                isInput ? "input" : "output", index);
  argument.kind = hal::Argument::Kind::kBuffer;
  argument.token = buffer->buffer->token();
  execution->keep(std::move(buffer));
  return argument;
}

Status ServedRequests::createExecution(Call& call, schema::ExecutionRequest::Reader from) {
  HEARTH_ASSIGN(const auto model, call.known(objects_.model(from.getModel()), "a model"));
  std::vector<memory::PoolRef> memories;
  for (const schema::Memory::Reader memory : from.getMemories()) {
    HEARTH_ASSIGN(memory::PoolRef pool, memories_.map(memory, call.descriptors));
    memories.push_back(std::move(pool));
  }
  auto execution = std::make_shared<ServedExecution>(
      model->served->outputs, ClientTurns{takesTurns_ ? &turns_ : nullptr, model->priority},
      model->memory, model->threads, [models = sharedModels_, weak = std::weak_ptr(model->served)] {
        // Else others would be given a model that never computes again.
        if (const auto served = weak.lock(); served != nullptr && models != nullptr)
          models->forget(served);
      });
  hal::Request request;
  request.loopTimeout = from.getLoopTimeout();
  const auto read = [&](capnp::List<schema::Argument>::Reader list, bool isInput,
                        std::vector<hal::Argument>* to) -> Status {
    for (uint32_t i = 0; i < list.size(); ++i) {
      HEARTH_ASSIGN(hal::Argument argument, readArgument(call, list[i], from.getModel(), isInput, i,
                                                         memories, execution.get()));
      to->push_back(std::move(argument));
    }
    return {};
  };
  HEARTH_TRY(read(from.getInputs(), true, &request.inputs));
  HEARTH_TRY(read(from.getOutputs(), false, &request.outputs));
  if (options_.isShared) HEARTH_TRY(execution->copyArguments(&request, &memories_));
  HEARTH_TRY(execution->bind(*model->served->prepared, std::move(request), std::move(memories)));
  HEARTH_ASSIGN(const uint64_t name, objects_.add(std::move(execution)));
  call.reply.setObject(name);
  return {};
}

Status ServedRequests::compute(Call& call, schema::Computation::Reader from) {
  HEARTH_ASSIGN(const auto execution,
                call.known(objects_.execution(from.getExecution()), "an execution"));
  writeResult(execution->compute(decodeDeadline(from.getDeadline())), call.reply.initResult());
  return {};
}

Status ServedRequests::startFenced(Call& call, schema::FencedComputation::Reader from) {
  HEARTH_ASSIGN(const auto execution,
                call.known(objects_.execution(from.getExecution()), "an execution"));
  if (from.getFences().size() > call.descriptors.size())
    return call.violation("A client names {} fences and passes {} descriptors.",
                          from.getFences().size(), call.descriptors.size());
  HEARTH_ASSIGN(std::shared_ptr<void> places, memories_.hold(from.getFences().size()));
  std::vector<base::Descriptor> fences;
  for (const uint32_t index : from.getFences()) {
    HEARTH_ASSIGN(base::Descriptor fence, duplicateDescriptor(index, call.descriptors));
    fences.push_back(std::move(fence));
  }
  HEARTH_ASSIGN(call.fence,
                execution->startFenced(std::move(fences), decodeDeadline(from.getDeadline()),
                                       std::move(places)));
  call.reply.setFence(call.attachments.add(call.fence.get()));
  return {};
}

Status ServedRequests::finishFenced(Call& call, uint64_t name) {
  HEARTH_ASSIGN(const auto execution, call.known(objects_.execution(name), "an execution"));
  writeResult(execution->finishFenced(), call.reply.initResult());
  return {};
}

Status ServedRequests::openMailbox(Call& call, schema::Mailbox::Reader from) {
  HEARTH_ASSIGN(auto execution,
                call.known(objects_.execution(from.getExecution()), "an execution"));
  HEARTH_ASSIGN(base::Descriptor own, duplicateDescriptor(from.getDescriptor(), call.descriptors));
  HEARTH_ASSIGN(MailboxPage page, MailboxPage::open(std::move(own)));
  const auto mailbox = std::make_shared<ServedMailbox>(std::move(page), std::move(execution),
                                                       state_.computing, pulse_);
  HEARTH_TRY(objects_.addMailbox(from.getExecution(), mailbox));
  const bool isStarted =
      threads_.start("hearth-mailbox", [self = call.self, mailbox = mailbox]() mutable {
        base::logged("Serving a mailbox", [&] { mailbox->serve(); });
        mailbox.reset();
      });
  if (!isStarted) {
    objects_.removeMailbox(from.getExecution());
    return fail(ErrorCode::kResourceExhaustedTransient, "There is no thread for a mailbox.");
  }
  call.reply.setDone();
  return {};
}

Status ServedRequests::fetchResult(Call& call, uint64_t name) {
  HEARTH_ASSIGN(const auto execution, call.known(objects_.execution(name), "an execution"));
  HEARTH_ASSIGN(const hal::ExecutionResult result, execution->fetchResult());
  writeResult(result, call.reply.initResult());
  return {};
}

Status ServedRequests::allocate(Call& call, schema::Allocation::Reader from) {
  auto entry = std::make_shared<ClientBuffer>();
  std::vector<hal::BufferRole> roles;
  for (const schema::Role::Reader role : from.getRoles()) {
    HEARTH_ASSIGN(const auto model, call.known(objects_.model(role.getModel()), "a model"));
    roles.push_back(
        {model->served->prepared, role.getIsInput(), role.getIndex(), role.getFrequency()});
    entry->roles.emplace(role.getModel(), role.getIsInput(), role.getIndex());
  }
  entry->memory = std::make_shared<ModelMemory>(memories_);
  {
    const memory::BudgetScope scope(entry->memory.get());
    HEARTH_ASSIGN(entry->buffer, device_->allocate({readDimensions(from)}, roles));
  }
  if (entry->buffer == nullptr) return fail(ErrorCode::kOpFailed, "The driver gives no buffer.");
  HEARTH_ASSIGN(const uint64_t name, objects_.add(std::move(entry)));
  call.reply.setObject(name);
  return {};
}

Status ServedRequests::copyTo(Call& call, schema::Copy::Reader from) {
  HEARTH_ASSIGN(const auto buffer, call.known(objects_.buffer(from.getBuffer()), "a buffer"));
  HEARTH_ASSIGN(const memory::PoolRef memory, memories_.map(from.getMemory(), call.descriptors));
  if (!memory->writable())
    return fail(ErrorCode::kBadData, "A client gives read-only memory to copy a buffer to.");
  HEARTH_TRY(buffer->buffer->copyTo(memory));
  call.reply.setDone();
  return {};
}

Status ServedRequests::copyFrom(Call& call, schema::Copy::Reader from) {
  HEARTH_ASSIGN(const auto buffer, call.known(objects_.buffer(from.getBuffer()), "a buffer"));
  HEARTH_ASSIGN(const memory::PoolRef memory, memories_.map(from.getMemory(), call.descriptors));
  HEARTH_TRY(buffer->buffer->copyFrom(memory, readDimensions(from)));
  call.reply.setDone();
  return {};
}

}  // namespace hearth::ipc

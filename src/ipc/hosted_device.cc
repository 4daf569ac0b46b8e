// SPDX-License-Identifier: Apache-2.0
#include "ipc/hosted_device.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/caught.h"
#include "hal/extension_operations.h"
#include "hal/preparation_check.h"
#include "ipc/hosted_buffer.h"
#include "ipc/hosted_model.h"

namespace hearth::ipc {
namespace {

constexpr uint64_t kPatience = 1'000'000'000;  // nanoseconds

auto supportOf(const Frame& reply) {
  return readReply(reply, schema::Reply::SUPPORT,
                   [](auto from) -> Result<std::vector<hal::OperationSupport>> {
                     return readSupport(from.getSupport());
                   });
}

// One entry for each operation, as the runtime relies on.
Result<std::vector<hal::OperationSupport>> checkedSupport(const Frame& reply,
                                                          const graph::Model& model) {
  HEARTH_ASSIGN(auto support, supportOf(reply));
  const size_t operations = model.subgraphs.empty() ? 0 : model.main().operations.size();
  if (support.size() != operations)
    return fail(ErrorCode::kBadData, "The host of a driver answers for {} of {} operations.",
                support.size(), operations);
  return support;
}

// The files and folders that options of a driver name.
std::vector<std::string> filesOf(const hal::PrepareOptions& options) {
  std::vector<std::string> files;
  for (const auto& [name, value] : options.driverOptions) {
    if (!value.starts_with('/')) continue;
    for (size_t begin = 0; begin <= value.size();) {
      const size_t end = std::min(value.find(':', begin), value.size());
      if (value[begin] == '/') files.push_back(value.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

Result<std::shared_ptr<HostedDevice>> HostedDevice::create(std::string name, HostOpener open,
                                                           HostMaker make) {
  HEARTH_ASSIGN(auto link, HostLink::create(std::move(name), std::move(open)));
  return std::shared_ptr<HostedDevice>(new HostedDevice(std::move(link), std::move(make)));
}

Result<std::shared_ptr<HostLink>> HostedDevice::linkFor(const hal::PrepareOptions& options) {
  const std::vector<std::string> files = filesOf(options);
  if (!make_ || files.empty()) return link_;
  std::unique_lock lock(mutex_);
  const auto known = [&] {
    return others_[files].lock();
  };
  if (auto link = known()) return link;
  opening_.take(lock);
  if (auto link = known()) {
    opening_.give();
    return link;
  }
  lock.unlock();
  auto opened = base::caught([&] { return HostLink::create(name(), make_(files)); });
  lock.lock();
  opening_.give();
  std::erase_if(others_, [](const auto& other) { return other.second.expired(); });
  if (opened) others_[files] = *opened;
  return opened;
}

HostedDevice::State HostedDevice::state() const {
  State state{.isShared = link_->device().isShared, .restarts = link_->restarts()};
  base::logged("Asking a driver's host", [&] {
    const std::shared_ptr<Session> session = link_->sessionIfThere();
    if (session == nullptr || !session->isHostThere()) return;
    state.isShared = session->device().isShared;
    state.process = session->device().process;
    Outgoing outgoing;
    outgoing.request.setState();
    const auto reply = session->call(outgoing, Patience::until(base::Deadline::after(kPatience)));
    if (!reply) return;
    static_cast<void>(
        readReply(*reply, schema::Reply::STATE, [&](schema::Reply::Reader from) -> Status {
          state.clients = from.getState().getClients();
          state.memory = from.getState().getMemory();
          return {};
        }));
  });
  return state;
}

std::vector<std::string> HostedDevice::supportedExtensions() const {
  std::vector<std::string> extensions = link_->device().extensions;
  std::erase(extensions, hal::kCustomExtensionName);
  std::erase(extensions, hal::kStringExtensionName);
  return extensions;
}

void HostedDevice::warmUp() {
  base::logged("Warming up a driver's host", [&] {
    static_cast<void>(link_->callTwice([](Outgoing& outgoing) -> Status {
      outgoing.request.setWarmUp();
      return {};
    }));
  });
}

Result<std::vector<hal::OperationSupport>> HostedDevice::supportedOperations(
    const graph::Model& model) {
  HEARTH_ASSIGN(const Frame reply, link_->callTwice([&](Outgoing& outgoing) {
    return writeModel(model, outgoing.request.initSupportedOperations(), &outgoing.attachments);
  }));
  return checkedSupport(reply, model);
}

Result<std::vector<hal::OperationSupport>> HostedDevice::explainOperations(
    const graph::Model& model) {
  HEARTH_ASSIGN(const Frame reply, link_->callTwice([&](Outgoing& outgoing) {
    return writeModel(model, outgoing.request.initExplainOperations(), &outgoing.attachments);
  }));
  return checkedSupport(reply, model);
}

Result<std::shared_ptr<hal::PreparedModel>> HostedDevice::prepareModel(
    std::shared_ptr<const graph::Model> model, const hal::PrepareOptions& options,
    hal::Cache cache) {
  if (model == nullptr) return fail(ErrorCode::kUnexpectedNull, "The model is null.");
  // A host may have the model of another client at hand, and would not look at the deadline.
  HEARTH_TRY(hal::checkDeadline(options));
  HEARTH_ASSIGN(auto link, linkFor(options));
  return HostedModel::prepare(std::move(link), {std::move(model), options, std::move(cache)});
}

Result<std::shared_ptr<hal::PreparedModel>> HostedDevice::prepareModelFromCache(
    const hal::PrepareOptions& options, hal::Cache cache) {
  HEARTH_TRY(hal::checkDeadline(options));
  HEARTH_ASSIGN(auto link, linkFor(options));
  return HostedModel::prepare(std::move(link), {nullptr, options, std::move(cache)});
}

Result<hal::StartReport> HostedDevice::explainStart(std::shared_ptr<const graph::Model> model,
                                                    const hal::PrepareOptions& options) {
  if (model == nullptr) return fail(ErrorCode::kUnexpectedNull, "The model is null.");
  HEARTH_ASSIGN(const auto link, linkFor(options));
  HEARTH_ASSIGN(const Frame reply, link->callTwice([&](Outgoing& outgoing) {
    auto preparation = outgoing.request.initExplainStart();
    writeOptions(options, preparation);
    return writeModel(*model, preparation.initModel(), &outgoing.attachments);
  }));
  return readReply(reply, schema::Reply::REPORT,
                   [](auto from) { return readReport(from.getReport()); });
}

Result<base::Sha256Digest> HostedDevice::cacheBuild() const {
  HEARTH_ASSIGN(const Frame reply, link_->callTwice([](Outgoing& outgoing) -> Status {
    outgoing.request.setCacheBuild();
    return {};
  }));
  return readReply(reply, schema::Reply::DIGEST,
                   [](auto from) { return readDigest(from.getDigest()); });
}

hal::CacheVerdict HostedDevice::explainCache(const graph::Model& model,
                                             const hal::PrepareOptions& options,
                                             const hal::Cache& cache) {
  auto verdict = base::caught([&]() -> Result<hal::CacheVerdict> {
    HEARTH_ASSIGN(const auto link, linkFor(options));
    HEARTH_ASSIGN(const Frame reply, link->callTwice([&](Outgoing& outgoing) {
      auto preparation = outgoing.request.initExplainCache();
      writeOptions(options, preparation);
      writeCache(cache, preparation.initCache(), &outgoing.attachments);
      return writeModel(model, preparation.initModel(), &outgoing.attachments);
    }));
    return readReply(reply, schema::Reply::VERDICT,
                     [](auto from) { return readVerdict(from.getVerdict()); });
  });
  if (verdict) return *std::move(verdict);
  return {false, hal::kCacheNotTold, verdict.error().toString(), std::nullopt};
}

void HostedDevice::flush() {
  base::logged("Flushing a driver's host", [&] {
    std::vector<std::shared_ptr<HostLink>> links = {link_};
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [files, other] : others_)
        if (auto link = other.lock()) links.push_back(std::move(link));
    }
    for (const auto& link : links) {
      // A host that is not there has nothing to write.
      const std::shared_ptr<Session> session = link->sessionIfThere();
      if (session == nullptr) continue;
      Outgoing outgoing;
      outgoing.request.setFlush();
      static_cast<void>(session->call(outgoing));
    }
  });
}

Result<std::unique_ptr<hal::Buffer>> HostedDevice::allocate(
    const hal::BufferDescription& description, const std::vector<hal::BufferRole>& roles) {
  return HostedBuffer::allocate(link_, description, roles);
}

}  // namespace hearth::ipc

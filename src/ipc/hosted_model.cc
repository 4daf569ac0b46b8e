// SPDX-License-Identifier: Apache-2.0
#include "ipc/hosted_model.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <mutex>
#include <string>
#include <utility>

#include "base/caught.h"
#include "hal/longest_step.h"
#include "ipc/hosted_execution.h"

namespace hearth::ipc {
namespace {

// So that sums with points in time stay in their range.
constexpr std::chrono::nanoseconds kLongestPatience = std::chrono::days(30);

Result<std::chrono::nanoseconds> longestStepOf(const hal::PrepareOptions& options) {
  const auto found = options.driverOptions.find(hal::kLongestStepOption);
  if (found == options.driverOptions.end()) return {};
  const std::string& text = found->second;
  const char* const end = text.data() + text.size();
  int64_t nanoseconds = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, nanoseconds);
  if (error != std::errc() || stop != end || nanoseconds < 0)
    return fail(ErrorCode::kBadData, "The option {} is \"{}\", which is no number from 0 to {}.",
                hal::kLongestStepOption, text, std::numeric_limits<int64_t>::max());
  return std::min(std::chrono::nanoseconds(nanoseconds), kLongestPatience);
}

}  // namespace

HostedModel::HostedModel(std::shared_ptr<HostLink> link, ModelSource source)
    : link_(std::move(link)), source_(std::move(source)) {}

HostedModel::~HostedModel() {
  if (isThere()) place_.session->release(schema::Release::Kind::MODEL, place_.object);
}

Result<std::shared_ptr<HostedModel>> HostedModel::prepare(std::shared_ptr<HostLink> link,
                                                          ModelSource source) {
  std::shared_ptr<HostedModel> model(new HostedModel(std::move(link), std::move(source)));
  HEARTH_ASSIGN(model->longestStep_, longestStepOf(model->source_.options));
  for (int attempt = 0;; ++attempt) {
    HEARTH_ASSIGN(const auto session, model->link_->session());
    auto place = model->prepareOn(session);
    if (!place && session->isDead() && attempt == 0) continue;
    HEARTH_ASSIGN(model->place_, std::move(place));
    break;
  }
  // Later preparations have all the time that they need, and write no files: the first one did.
  model->source_.options.deadline = base::Deadline();
  if (model->source_.model != nullptr) model->source_.cache = {};
  return model;
}

Result<HostedModel::Place> HostedModel::prepareOn(const std::shared_ptr<Session>& session) const {
  Outgoing outgoing;
  auto preparation = source_.model != nullptr ? outgoing.request.initPrepare()
                                              : outgoing.request.initPrepareFromCache();
  writeOptions(source_.options, preparation);
  if (source_.model != nullptr)
    HEARTH_TRY(writeModel(*source_.model, preparation.initModel(), &outgoing.attachments));
  writeCache(source_.cache, preparation.initCache(), &outgoing.attachments);
  outgoing.makes = schema::Release::Kind::MODEL;
  HEARTH_ASSIGN(const Frame reply,
                session->call(outgoing, session->patience(source_.options.deadline)));
  return readReply(reply, schema::Reply::MODEL, [&](auto from) -> Result<Place> {
    return Place{session, from.getModel().getObject(), from.getModel().getHasFences()};
  });
}

Result<HostedModel::Place> HostedModel::place() {
  std::unique_lock lock(mutex_);
  if (isThere()) return place_;
  preparing_.take(lock);
  if (isThere()) {
    preparing_.give();
    return place_;
  }
  lock.unlock();
  auto place = base::caught([&]() -> Result<Place> {
    HEARTH_ASSIGN(const auto session, link_->session());
    return prepareOn(session);
  });
  lock.lock();
  if (place) place_ = *place;
  preparing_.give();
  if (!place)
    return fail(ErrorCode::kDeadObject, "A model whose host has ended cannot be prepared again: {}",
                place.error().toString());
  return place;
}

bool HostedModel::hasFences() const {
  const std::lock_guard lock(mutex_);
  return place_.hasFences;
}

Result<std::unique_ptr<hal::Execution>> HostedModel::createExecution(hal::Request request) {
  return HostedExecution::create(shared_from_this(), std::move(request));
}

hal::StartReport HostedModel::report(bool isFinal) const {
  Place place;
  {
    const std::lock_guard lock(mutex_);
    place = place_;
  }
  auto report = base::caught([&]() -> Result<hal::StartReport> {
    Outgoing outgoing;
    auto request = outgoing.request.initStartReport();
    request.setModel(place.object);
    request.setIsFinal(isFinal);
    HEARTH_ASSIGN(const Frame reply, place.session->call(outgoing));
    return readReply(reply, schema::Reply::REPORT,
                     [](auto from) { return readReport(from.getReport()); });
  });
  if (report) return *std::move(report);
  hal::StartReport unknown;
  unknown.reason = report.error().toString();
  return unknown;
}

}  // namespace hearth::ipc

// SPDX-License-Identifier: Apache-2.0
#include "cache/store/disk_store.h"

#include <utility>

#include "cache/identity/content_hash.h"
#include "cache/segment/segment_file.h"

namespace hearth::cache {
namespace {

// How many bytes of payloads may wait for the writing thread.
constexpr size_t kWriteQueue = size_t{256} << 20;

}  // namespace

StoreWorkers::StoreWorkers(const char* name, BlockChecks::Memory memory,
                           std::shared_ptr<CorruptionHandlers> corruptionHandlers)
    : handlers(std::move(corruptionHandlers)),
      checks(std::move(memory)),
      writer(name, base::TaskThread::Priority::kNormal, kWriteQueue),
      checker("hearth-check", base::TaskThread::Priority::kIdle, SIZE_MAX) {}

void StoreWorkers::addCheck(std::shared_ptr<BlockCheck> check) {
  if (checks.add(std::move(check))) holdChecks();
}

// Queues the checks, but holds them: the start that found the segments has more urgent work now.
void StoreWorkers::holdChecks() {
  checker.postHeld([this] { checks.runAll([this] { return checker.isStopping(); }); });
}

void StoreWorkers::inherit(StoreWorkers& parent, const std::vector<SegmentKey>& wrong) {
  if (checks.inherit(parent.checks)) holdChecks();
  for (const SegmentKey& key : wrong) checker.postHeld([this, key] { handlers->call(key); });
}

void StoreWorkers::stop() {
  writer.stop(true);
  checker.stop(false);
}

void DiskStore::publishAsync(PublishRequest request) {
  const size_t cost = request.payload.size();
  const auto shared = std::make_shared<PublishRequest>(std::move(request));
  const auto run = [this, shared] {
    auto result = storeCaught([&] {
      std::vector<base::Sha256Digest> blocks;
      if (!shared->key) blocks = blockDigests(shared->payload);
      SegmentPayload payload(shared->payload, blocks);
      payload.mayChange = shared->mayChange;
      return publish(shared->key ? *shared->key : contentSegmentKey(shared->payload.size(), blocks),
                     payload);
    });
    shared->ticket.release();
    if (shared->done) shared->done(std::move(result));
  };
  if (!workers().writer.post(run, cost)) run();
}

void DiskStore::afterPublishing(std::function<void()> task) {
  workers().writer.release();
  if (!workers().writer.post(task)) task();
}

bool DiskStore::flushFor(std::chrono::nanoseconds patience) {
  return workers().writer.waitUntilDone(patience);
}

bool DiskStore::freeMemory() {
  flush();
  return true;
}

void DiskStore::settle() {
  flush();
  workers().checker.waitUntilIdle();
}

void DiskStore::checkFound() {
  workers().checker.releaseLater(kCheckDelay);
}

void DiskStore::checkBeforeExit() {
  workers().checks.runPart({.least = kLeastCheckedBeforeExit / kSegmentBlock,
                            .most = kCheckedBeforeExit / kSegmentBlock,
                            .sample = kSampledBeforeExit / kSegmentBlock,
                            .time = kCheckTimeBeforeExit});
}

std::shared_ptr<void> DiskStore::addCorruptionHandler(CorruptionHandler handler) {
  return workers().handlers->add(std::move(handler));
}

void DiskStore::expectRepairs() {
  workers().writer.startNow();
}

StoreCounters DiskStore::counters() const {
  StoreCounters counters = workers().tally.counters();
  counters.bytesHashed = workers().hashed;
  return counters;
}

}  // namespace hearth::cache

// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/page_in.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

#include "base/helper_thread.h"

namespace hearth::cpu {
namespace {

// From here on threads of their own bring the pages in.
constexpr uint64_t kWorthAThread = uint64_t{1} << 20;
// What one thread takes at a time: a few huge pages.
constexpr size_t kPiece = size_t{4} << 20;
constexpr int kDiskReaders = 4;
// A page that is touched brings in those around it that are in memory: so many bytes on Linux,
// unless somebody tunes it.
constexpr size_t kFaultAround = size_t{64} << 10;
struct Piece {
  const cache::Segment* segment;
  size_t offset;
  size_t size;
};

struct Work {
  std::vector<cache::SegmentRef> segments;
  std::vector<Piece> pieces;
  bool isCold = false;
  std::function<void()> done;
  std::atomic<size_t> next = 0;

  // Once nobody brings in anything any more.
  ~Work() { done(); }

  void run() {
    for (;;) {
      const size_t index = next.fetch_add(1, std::memory_order_relaxed);
      if (index >= pieces.size()) return;
      const Piece& piece = pieces[index];
      if (isCold)
        piece.segment->prefault(piece.offset, piece.size);
      else
        touch(piece);
    }
  }

  // Of what is in memory already, a page here and there is enough. They are read, and not asked
  // for: a thread of low priority would hold the lock on the process's mappings, for which the
  // start waits whenever it maps memory.
  static void touch(const Piece& piece) {
    const volatile uint8_t* const bytes = piece.segment->data() + piece.offset;
    for (size_t offset = 0; offset < piece.size; offset += kFaultAround) (void)bytes[offset];
    (void)bytes[piece.size - 1];
  }
};

bool isCold(const std::vector<cache::SegmentRef>& segments) {
  bool isCold = false;
  for (const cache::SegmentRef& segment : segments) {
    if (segment->isResident()) continue;
    isCold = true;
    segment->expectDisk();
  }
  return isCold;
}

bool start(const std::shared_ptr<Work>& work) {
  // Waiting for a disk costs no processor. Where there is nothing to wait for and processors are
  // few the start itself goes first; what is not here in time is brought in by whoever reads it.
  const auto startThread = work->isCold ? base::startHelperThread : base::startIdleThread;
  std::thread thread = startThread("hearth-pages", [work] { work->run(); });
  if (!thread.joinable()) return false;
  thread.detach();
  return true;
}

// What waits for the end of all starts. Without locks: a child made by fork goes on with it.
struct Waiting {
  std::shared_ptr<Work> work;
  Waiting* next;
};
std::atomic<Waiting*> waiting = nullptr;
std::atomic<int> startsInProgress = 0;

void startWaiting() {
  Waiting* first = waiting.exchange(nullptr);
  while (first != nullptr) {
    const std::unique_ptr<Waiting> one(first);
    start(one->work);
    first = one->next;
  }
}

void startWhenQuiet(const std::shared_ptr<Work>& work) {
  auto* const one = new Waiting{work, waiting.load()};
  while (!waiting.compare_exchange_weak(one->next, one)) {
  }
  // Either this sees that a start goes on, or that start's end sees what was added.
  if (startsInProgress.load() == 0) startWaiting();
}

}  // namespace

StartInProgress::StartInProgress() {
  startsInProgress.fetch_add(1);
}

StartInProgress::~StartInProgress() {
  if (startsInProgress.fetch_sub(1) == 1) startWaiting();
}

std::function<void()> pageIn(std::vector<cache::SegmentRef> segments, std::function<void()> done) {
  const auto work = std::make_shared<Work>();
  work->segments = std::move(segments);
  work->done = std::move(done);
  uint64_t bytes = 0;
  for (const cache::SegmentRef& segment : work->segments) {
    bytes += segment->size();
    for (size_t offset = 0; offset < segment->size(); offset += kPiece)
      work->pieces.push_back({segment.get(), offset, std::min(kPiece, segment->size() - offset)});
  }
  if (bytes < kWorthAThread) {
    work->run();
    return [] {
    };
  }
  work->isCold = isCold(work->segments);
  if (!work->isCold)
    return [work] {
      startWhenQuiet(work);
    };
  for (int i = 0; i < kDiskReaders && start(work); ++i) {
  }
  return [] {
  };
}

}  // namespace hearth::cpu

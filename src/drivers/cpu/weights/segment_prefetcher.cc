// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/segment_prefetcher.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

#include "base/caught.h"
#include "base/fork_gate.h"
#include "base/helper_thread.h"

namespace hearth::cpu {
namespace {

// From this many bytes on prefetching has threads of its own.
constexpr uint64_t kWorthAThread = uint64_t{1} << 20;
// Bytes that a thread prefetches at a time: a few huge pages.
constexpr size_t kPiece = size_t{4} << 20;
constexpr int kDiskReaders = 4;
// Of segments that together have so many bytes, a huge page, one tells whether they are in memory:
// asking takes a tenth of the time in which a small segment is opened and mapped.
constexpr size_t kAskedAtOnce = size_t{2} << 20;
// Touching one page maps those around it that are in memory. This is Linux's default number of
// bytes (fault_around_bytes).
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

  // The last thread to leave the work destroys it.
  ~Work() { base::logged("What follows the reading of packed weights", done); }

  // Takes the segments that no other work has claimed: signatures of a model share segments.
  void divide() {
    for (const cache::SegmentRef& segment : segments) {
      if (!segment->claimPages()) continue;
      for (size_t offset = 0; offset < segment->size(); offset += kPiece)
        pieces.push_back({segment.get(), offset, std::min(kPiece, segment->size() - offset)});
    }
  }

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

  // Maps a piece that is in the page cache, by reading one page of each fault-around window. It
  // does not call madvise: a thread of low priority would hold the lock on the process's mappings,
  // for which the start waits whenever it maps memory.
  static void touch(const Piece& piece) {
    const volatile uint8_t* const bytes = piece.segment->data() + piece.offset;
    for (size_t offset = 0; offset < piece.size; offset += kFaultAround) (void)bytes[offset];
    (void)bytes[piece.size - 1];
  }
};
using WorkRef = std::shared_ptr<Work>;

bool areResident(const std::vector<cache::SegmentRef>& segments) {
  size_t unasked = kAskedAtOnce;
  for (const cache::SegmentRef& segment : segments) {
    unasked += segment->size();
    if (unasked < kAskedAtOnce) continue;
    unasked = 0;
    if (!segment->isResident()) return false;
  }
  return true;
}

bool isCold(const std::vector<cache::SegmentRef>& segments) {
  if (areResident(segments)) return false;
  for (const cache::SegmentRef& segment : segments)
    if (!segment->isResident()) segment->expectDisk();
  return true;
}

// Works in the order in which they were added. It has no lock, so that a forked child can go on
// using it.
class WorkList {
 public:
  void add(const WorkRef& work) {
    auto* const node = new Node{work, last_.load()};
    while (!last_.compare_exchange_weak(node->before, node)) {
    }
  }
  bool isEmpty() const { return last_.load() == nullptr; }

  // Removes all works and returns them. Those that find no memory are not prefetched.
  std::vector<WorkRef> take() {
    std::vector<WorkRef> works;
    Node* last = last_.exchange(nullptr);
    size_t count = 0;
    for (const Node* node = last; node != nullptr; node = node->before) ++count;
    static_cast<void>(base::caught([&] { works.reserve(count); }));
    while (last != nullptr) {
      const std::unique_ptr<Node> node(last);
      last = node->before;
      if (works.size() < works.capacity()) works.push_back(std::move(node->work));
    }
    std::ranges::reverse(works);
    return works;
  }

 private:
  struct Node {
    WorkRef work;
    Node* before;
  };
  std::atomic<Node*> last_ = nullptr;
};

// Disk readers mostly wait, so they take no processor from executions. Each of them helps with all
// works, in their order.
void readDisk(const std::vector<WorkRef>& works) {
  for (int i = 0; i < kDiskReaders; ++i) {
    std::thread thread = base::startHelperThread("hearth-pages", [works] {
      for (const WorkRef& work : works) work->run();
    });
    if (!thread.joinable()) return;
    thread.detach();
  }
}

// Maps cached pages in one idle thread for the whole process: mapping takes a processor all the
// time, and executions go first and map what they reach before. An idle thread may wait long for a
// turn with a lock on the process's mappings in its hands; with a thread for each start there would
// be the more of them the busier the machine is.
class IdleReader {
 public:
  void add(const WorkRef& work) { works_.add(work); }
  // Begins with the works that were added, unless a thread is there already.
  void begin() {
    while (!works_.isEmpty() && takeTurn()) {
      std::thread thread = base::startIdleThread("hearth-pages", [this] { run(); });
      if (thread.joinable()) return thread.detach();
      static_cast<void>(works_.take());
      endTurn();
    }
  }

 private:
  void run() {
    do {
      for (const WorkRef& work : works_.take()) work->run();
      endTurn();
      // Works that were added before the turn ended are this thread's or a later one's.
    } while (!works_.isEmpty() && takeTurn());
  }
  // A turn belongs to a thread of one process; a parent's does not exist in its child.
  static uint64_t ownTurn() { return uint64_t{base::ForkGate::generation()} + 1; }
  bool takeTurn() {
    uint64_t turn = turn_.load();
    while (turn != ownTurn())
      if (turn_.compare_exchange_weak(turn, ownTurn())) return true;
    return false;
  }
  void endTurn() { turn_ = 0; }

  WorkList works_;
  std::atomic<uint64_t> turn_ = 0;  // 0 = nobody's
};

constinit WorkList waiting;  // for the end of all starts
constinit IdleReader idleReader;

// How many starts are in progress in this process. Those of a parent do not end in its forked
// child, so they do not count there.
class StartCount {
 public:
  // The generation of the start, for end().
  uint32_t begin() {
    const uint32_t generation = base::ForkGate::generation();
    change(generation, 1);
    return generation;
  }
  // Whether no start is in progress any more.
  bool end(uint32_t generation) {
    if (generation == base::ForkGate::generation()) change(generation, UINT64_MAX);
    return isQuiet();
  }
  bool isQuiet() const { return countIn(counts_.load(), base::ForkGate::generation()) == 0; }

 private:
  static uint64_t countIn(uint64_t counts, uint32_t generation) {
    return counts >> 32 == generation ? counts & UINT32_MAX : 0;
  }
  void change(uint32_t generation, uint64_t difference) {
    uint64_t before = counts_.load();
    while (!counts_.compare_exchange_weak(
        before, uint64_t{generation} << 32 | (countIn(before, generation) + difference))) {
    }
  }

  std::atomic<uint64_t> counts_ = 0;  // the generation in the upper half, its starts in the lower
};
constinit StartCount startsInProgress;

void startWaiting() {
  const std::vector<WorkRef> works = waiting.take();
  std::vector<WorkRef> cold;
  static_cast<void>(base::caught([&] { cold.reserve(works.size()); }));
  for (const WorkRef& work : works)
    if (work->isCold && cold.size() < cold.capacity()) cold.push_back(work);
  for (const WorkRef& work : cold) work->divide();
  if (!cold.empty()) readDisk(cold);
  for (const WorkRef& work : works) {
    if (work->isCold) continue;
    work->divide();
    idleReader.add(work);
  }
  idleReader.begin();
}

void startWhenQuiet(const WorkRef& work) {
  waiting.add(work);
  // Either this thread sees a start in progress, or the end of that start sees the new work.
  if (startsInProgress.isQuiet()) startWaiting();
}

}  // namespace

StartInProgress::StartInProgress() : generation_(startsInProgress.begin()) {}

StartInProgress::~StartInProgress() {
  if (startsInProgress.end(generation_))
    base::logged("The reading of packed weights", startWaiting);
}

std::function<void()> pageIn(std::vector<cache::SegmentRef> segments,
                             const std::function<void()>& beforeDisk, std::function<void()> done) {
  const auto work = std::make_shared<Work>();
  uint64_t bytes = 0;
  for (const cache::SegmentRef& segment : segments) bytes += segment->size();
  work->segments = std::move(segments);
  work->done = std::move(done);
  if (bytes < kWorthAThread) {
    work->divide();
    work->run();
    return [] {
    };
  }
  work->isCold = isCold(work->segments);
  if (!work->isCold)
    return [work] {
      startWhenQuiet(work);
    };
  beforeDisk();
  startWhenQuiet(work);
  return [] {
  };
}

}  // namespace hearth::cpu

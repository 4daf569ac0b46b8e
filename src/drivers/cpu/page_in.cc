// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/page_in.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

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
// Of the thread that touches pages: where processors are few the start itself goes first. What is
// not here in time is brought in by whoever reads it.
constexpr int kTouchingPriority = 19;

const auto kPage = static_cast<size_t>(::sysconf(_SC_PAGESIZE));

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

  // Of what is in memory already, a page here and there is enough. Asking for all of them takes
  // several times as long, and as long no other thread of the process can map memory.
  static void touch(const Piece& piece) {
    for (size_t offset = 0; offset < piece.size; offset += kFaultAround)
      piece.segment->prefault(piece.offset + offset, 1);
    piece.segment->prefault(piece.offset + (piece.size - 1) / kPage * kPage, 1);
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

// The first of all threads finds out how many there have to be: the caller has better things to do.
bool start(const std::shared_ptr<Work>& work, bool isFirst = true) {
  try {
    std::thread([work, isFirst] {
      if (isFirst && (work->isCold = isCold(work->segments)))
        for (int i = 1; i < kDiskReaders; ++i) start(work, false);
      // Waiting for a disk costs no processor.
      if (!work->isCold)
        ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kTouchingPriority);
      work->run();
    }).detach();
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

}  // namespace

void pageIn(std::vector<cache::SegmentRef> segments, std::function<void()> done) {
  const auto work = std::make_shared<Work>();
  work->segments = std::move(segments);
  work->done = std::move(done);
  uint64_t bytes = 0;
  for (const cache::SegmentRef& segment : work->segments) {
    bytes += segment->size();
    for (size_t offset = 0; offset < segment->size(); offset += kPiece)
      work->pieces.push_back({segment.get(), offset, std::min(kPiece, segment->size() - offset)});
  }
  if (bytes < kWorthAThread) return work->run();
  start(work);
}

}  // namespace hearth::cpu

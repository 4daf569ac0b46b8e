// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/page_in.h"

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

struct Piece {
  const cache::Segment* segment;
  size_t offset;
  size_t size;
};

struct Work {
  std::vector<cache::SegmentRef> segments;
  std::vector<Piece> pieces;
  std::function<void()> done;
  std::atomic<size_t> next = 0;

  // Once nobody brings in anything any more.
  ~Work() { done(); }

  void run() {
    for (;;) {
      const size_t index = next.fetch_add(1, std::memory_order_relaxed);
      if (index >= pieces.size()) return;
      const Piece& piece = pieces[index];
      piece.segment->prefault(piece.offset, piece.size);
    }
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
      if (isFirst && isCold(work->segments))
        for (int i = 1; i < kDiskReaders; ++i) start(work, false);
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

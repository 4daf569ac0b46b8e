// SPDX-License-Identifier: Apache-2.0
#include "hal/joined_memories.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "memory/mapping.h"
#include "memory/pool.h"

namespace hearth::hal {
namespace {

// An argument in a memory that a file is behind, and the bytes of the file that it has.
struct Use {
  const memory::Pool* pool = nullptr;
  size_t index = 0;  // among the inputs, or the outputs if it is written
  bool isWritten = false;
  dev_t device = 0;
  ino_t file = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
  bool isJoined = false;

  bool isOfFile(const Use& other) const { return device == other.device && file == other.file; }
};

bool isInFile(const Argument& argument) {
  return argument.kind == Argument::Kind::kPool && argument.pool != nullptr &&
         argument.pool->fd() >= 0 && argument.pool->data() != nullptr && argument.length != 0 &&
         argument.pool->contains(argument.offset, argument.length);
}

bool isWrittenInFile(const Argument& argument) {
  return isInFile(argument) && argument.pool->writable();
}

// Whether an output and another argument lie in two memories.
bool hasTwoMemories(const Request& request) {
  const auto written = std::ranges::find_if(request.outputs, isWrittenInFile);
  if (written == request.outputs.end()) return false;
  const auto isElsewhere = [&](const Argument& argument) {
    return isInFile(argument) && argument.pool != written->pool;
  };
  return std::ranges::any_of(request.inputs, isElsewhere) ||
         std::ranges::any_of(request.outputs, isElsewhere);
}

Result<std::vector<Use>> usesOf(const Request& request) {
  std::vector<Use> uses;
  for (const bool isWritten : {true, false}) {
    const std::vector<Argument>& arguments = isWritten ? request.outputs : request.inputs;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Argument& argument = arguments[i];
      if (isWritten ? !isWrittenInFile(argument) : !isInFile(argument)) continue;
      Use use{argument.pool.get(), i, isWritten};
      use.begin = use.pool->offset() + argument.offset;
      use.end = use.begin + argument.length;
      if (const auto known = std::ranges::find(uses, use.pool, &Use::pool); known != uses.end()) {
        use.device = known->device;
        use.file = known->file;
      } else {
        struct stat status;
        if (::fstat(use.pool->fd(), &status) != 0)
          return std::unexpected(base::errnoError(errno, "Asking what file a memory is of"));
        use.device = status.st_dev;
        use.file = status.st_ino;
      }
      uses.push_back(use);
    }
  }
  return uses;
}

// What is mapped once more may be other memory where the descriptor is that of a device.
bool isSameWhenMappedAgain(int fd) {
  struct stat status;
  return memory::isDmaBuf(fd) || (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode));
}

// Marks the uses that overlap in different memories; says whether there are any.
bool findJoined(std::vector<Use>* uses) {
  bool isAny = false;
  for (Use& use : *uses) {
    if (!use.isWritten) continue;
    for (Use& other : *uses) {
      if (other.pool == use.pool || !use.isOfFile(other) || use.begin >= other.end ||
          other.begin >= use.end || !isSameWhenMappedAgain(use.pool->fd()))
        continue;
      use.isJoined = other.isJoined = isAny = true;
    }
  }
  return isAny;
}

// A mapping of all memories that such uses of the file of `first` lie in; `first` is written.
Result<memory::PoolRef> mapAll(const std::vector<Use>& uses, const Use& first) {
  uint64_t begin = first.pool->offset(), end = begin + first.pool->size();
  for (const Use& use : uses) {
    if (!use.isJoined || !use.isOfFile(first)) continue;
    begin = std::min(begin, use.pool->offset());
    end = std::max(end, use.pool->offset() + use.pool->size());
  }
  auto made = memory::Pool::ofFile(first.pool->fd(), begin, static_cast<size_t>(end - begin),
                                   memory::Mapping::Access::kReadWrite);
  // Then it was truncated meanwhile.
  if (!made && made.error().code() == ErrorCode::kBadData)
    return fail(ErrorCode::kOpFailed, "Two memories of one file cannot be used: {}",
                made.error().message());
  return made;
}

}  // namespace

Result<std::optional<Request>> joinMemories(const Request& request) {
  if (!hasTwoMemories(request)) return std::nullopt;
  HEARTH_ASSIGN(std::vector<Use> uses, usesOf(request));
  if (!findJoined(&uses)) return std::nullopt;
  Request joined = request;
  for (const Use& first : uses) {
    if (!first.isJoined || !first.isWritten || joined.outputs[first.index].pool.get() != first.pool)
      continue;
    HEARTH_ASSIGN(const memory::PoolRef pool, mapAll(uses, first));
    for (const Use& use : uses) {
      if (!use.isJoined || !use.isOfFile(first)) continue;
      Argument& argument = (use.isWritten ? joined.outputs : joined.inputs)[use.index];
      argument.pool = pool;
      argument.offset = use.begin - pool->offset();
    }
  }
  return joined;
}

}  // namespace hearth::hal

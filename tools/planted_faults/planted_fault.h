// SPDX-License-Identifier: Apache-2.0
// Included by the files that planted_faults.py changes, never by the sources of the repository:
// which of the faults in a program is on, and which of them a run reaches.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace planted {

// HEARTH_PLANTED_FAULT holds the number of the one fault that is on. HEARTH_PLANTED_REACHED names a
// file with a byte for each fault, in which those become 1 that a thread has come past; children
// write to the same file.
struct Choice {
  int number = 0;
  unsigned char* reached = nullptr;
};

inline Choice readChoice() {
  Choice choice;
  if (const char* number = std::getenv("HEARTH_PLANTED_FAULT")) choice.number = std::atoi(number);
  const char* path = std::getenv("HEARTH_PLANTED_REACHED");
  if (path == nullptr) return choice;
  const int file = ::open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return choice;
  const off_t size = ::lseek(file, 0, SEEK_END);
  void* bytes =
      ::mmap(nullptr, static_cast<size_t>(size), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (bytes != MAP_FAILED) choice.reached = static_cast<unsigned char*>(bytes);
  return choice;
}

// Read when the program or the library is loaded: a sandbox may forbid it later, and nothing is
// allocated where a test counts allocations. Faults in what runs before that are off.
inline const Choice choice = readChoice();

constexpr bool isOn(int number) {
  if consteval {
    return false;  // What the compiler computes has no fault.
  } else {
    if (choice.reached != nullptr) __atomic_store_n(choice.reached + number, 1, __ATOMIC_RELAXED);
    return choice.number == number;
  }
}

}  // namespace planted

// SPDX-License-Identifier: Apache-2.0
#include "drivers/delegate/vendor_library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/caught.h"
#include "base/descriptor.h"
#include "base/format.h"
#include "base/log.h"
#include "base/sha256.h"
#include "memory/sigbus_order.h"

namespace hearth::drivers::delegate {
namespace {

// What the library reports while this thread makes a delegate.
thread_local std::string* reported = nullptr;

void report(const char* message) {
  if (message == nullptr) return;
  base::logged("A delegate's report", [&] {
    // The interface does not say on which thread; what comes on another one is for the log.
    if (reported == nullptr) {
      base::logInfo("A delegate reports: {}", message);
      return;
    }
    if (!reported->empty()) *reported += ' ';
    *reported += message;
  });
}

Result<std::string> digestOf(const std::string& path) {
  HEARTH_ASSIGN(const base::Descriptor file, base::Descriptor::open(path, O_RDONLY));
  base::Sha256 hash;
  constexpr size_t kPiece = 64 << 10;
  std::vector<uint8_t> piece(kPiece);
  while (true) {
    const ssize_t count = ::read(file.get(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::unexpected(base::errnoError(errno, "Reading " + path));
    if (count == 0) break;
    hash.update(piece.data(), static_cast<size_t>(count));
  }
  std::string digits;
  for (const uint8_t byte : hash.finish()) digits += base::formatText("{:02x}", byte);
  return digits;
}

std::string loaderError() {
  const char* const text = ::dlerror();
  return text != nullptr ? text : "the loader says nothing";
}

}  // namespace

void DestroyDelegate::operator()(TfLiteDelegate* delegate) const {
  base::logged("A delegate's end", [&] { library->destroy_(delegate); });
}

Result<std::shared_ptr<VendorLibrary>> VendorLibrary::load(const std::string& path) {
  const std::shared_ptr<VendorLibrary> library(new VendorLibrary());
  library->path_ = path;
  HEARTH_ASSIGN(library->digest_, digestOf(path));
  // As TensorFlow Lite's own loaders do, so that a missing function is an error here.
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return fail(ErrorCode::kNotFound, "The delegate {} cannot be loaded: {}.", path, loaderError());
  library->create_ = reinterpret_cast<Create>(::dlsym(handle, "tflite_plugin_create_delegate"));
  library->destroy_ = reinterpret_cast<Destroy>(::dlsym(handle, "tflite_plugin_destroy_delegate"));
  if (library->create_ == nullptr || library->destroy_ == nullptr)
    return fail(ErrorCode::kBadData,
                "The library {} is no external delegate: it lacks "
                "tflite_plugin_create_delegate or tflite_plugin_destroy_delegate.",
                path);
  memory::putSigbusGuardFirst();
  return library;
}

Result<DelegatePointer> VendorLibrary::makeDelegate(const DelegateOptions& options) {
  std::vector<const char*> keys, values;
  for (const auto& [key, value] : options) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  std::string message;
  reported = &message;
  const Result<TfLiteDelegate*> made = base::caught([&]() -> Result<TfLiteDelegate*> {
    return create_(keys.data(), values.data(), keys.size(), report);
  });
  reported = nullptr;
  memory::putSigbusGuardFirst();
  if (!made)
    return fail(ErrorCode::kUnavailableDevice,
                "The library {} throws while it makes a delegate: {}", path_,
                made.error().message());
  if (*made == nullptr)
    return fail(ErrorCode::kUnavailableDevice,
                "The library {} makes no delegate{}{}. Is its device there, and may this process "
                "use it?",
                path_, message.empty() ? "" : ": ", message);
  return DelegatePointer(*made, DestroyDelegate{shared_from_this()});
}

}  // namespace hearth::drivers::delegate

// SPDX-License-Identifier: Apache-2.0
// A support library of NNAPI: a library whose table of functions is a whole implementation of the
// API, for devices of its own. Vendors ship them for Android; the C interface is that of
// include/android/NeuralNetworksSupportLibraryImpl.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "android/NeuralNetworksSupportLibraryImpl.h"
#include "base/result.h"
#include "base/sha256.h"

namespace hearth::drivers::support_library {

// An object of the library, which its own function frees.
template <typename Object>
using Handle = std::unique_ptr<Object, void (*)(Object*)>;

// Success for ANEURALNETWORKS_NO_ERROR, else the error that a function of the library answers;
// kOpFailed for a code that NNAPI does not have.
Status asStatus(int code, const char* function);

// Calls a function of the library that makes an object, with the object's address as its last
// argument. kOpFailed where it makes none and says that it succeeded.
template <typename Object, typename... Parameters, typename... Arguments>
Result<Handle<Object>> makeObject(const char* function, int (*create)(Parameters...),
                                  void (*free)(Object*), Arguments... arguments) {
  Object* object = nullptr;
  HEARTH_TRY(asStatus(create(arguments..., &object), function));
  if (object == nullptr)
    return fail(ErrorCode::kOpFailed, "The support library makes no object in {}.", function);
  return Handle<Object>(object, free);
}

// The text of a library, at most `limit` bytes long. kBadData for null, an empty or a longer text.
Result<std::string> checkedText(const char* text, size_t limit, const char* what);

// A loaded library. It stays loaded for the life of the process. Thread-safe, as NNAPI's functions
// are.
class SupportLibrary {
 public:
  // Loads a library. Errors: kNotFound where the loader cannot; kBadData where it does not export
  // hal::kSupportLibrarySymbol, and as of().
  static Result<std::shared_ptr<const SupportLibrary>> load(const std::string& path);
  // The library of a table, which is copied. kBadData for a null table, for one of a feature level
  // below 5, one that does not lie in readable memory, or one that lacks a function that
  // is needed here.
  static Result<std::shared_ptr<const SupportLibrary>> of(const NnApiSLDriverImpl* table);

  // The functions of feature level 5, with which the tables of all later levels begin.
  const NnApiSLDriverImplFL5& functions() const { return functions_; }
  // NNAPI's level of the operations that models of this library may have: 31, 1000006 or 1000007.
  int64_t featureLevel() const { return featureLevel_; }

  // Tells the library from other builds of it, by its build identifier, or by the path, size and
  // time of its file where it has none. kNotFound where it has no file either.
  Result<base::Sha256Digest> identity() const;

  // The device of this name, or the only device where the name is empty. kNotFound names the
  // devices that there are; kBadData for a library whose answers are not NNAPI's.
  Result<const ANeuralNetworksDevice*> device(const std::string& name) const;

 private:
  explicit SupportLibrary(const NnApiSLDriverImplFL5& functions);

  const NnApiSLDriverImplFL5 functions_;
  const int64_t featureLevel_;
};

}  // namespace hearth::drivers::support_library

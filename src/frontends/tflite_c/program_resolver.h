// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "frontends/tflite/reader/file_operators.h"
#include "frontends/tflite_c/declarations.h"
#include "tflite_abi/operator.h"

namespace hearth::tflite_c {

// Functions of a program that find its operators; null ones find nothing. Structures that they
// return may be of any version: what is read of them, all have. Value type.
struct ResolverFunctions {
  TfLiteFindBuiltinOp findBuiltin = nullptr;
  TfLiteFindCustomOp findCustom = nullptr;
  TfLiteFindBuiltinOperator findBuiltinOperator = nullptr;
  TfLiteFindCustomOperator findCustomOperator = nullptr;
  void* user = nullptr;

  bool isSet() const {
    return findBuiltin != nullptr || findCustom != nullptr || findBuiltinOperator != nullptr ||
           findCustomOperator != nullptr;
  }
};

// An operator for a built-in operation in versions from `first` to `last`, or for the custom
// operations of its name. Value type.
struct AddedOperator {
  TfLiteOperator custom;
  int32_t first = 1;
  int32_t last = 1;
};

// Finds the operators with which a program computes operations of a model, built-in ones included.
// Immutable; as thread-safe as the program's functions.
class ProgramResolver {
 public:
  ProgramResolver(ResolverFunctions functions, std::vector<AddedOperator> added,
                  bool hasOthers = true)
      : functions_(functions), added_(std::move(added)), hasOthers_(hasOthers) {}

  // Whether it may find anything, or refuse what it does not find.
  bool isNeeded() const { return functions_.isSet() || !added_.empty() || !hasOthers_; }
  // Whether Hearth computes built-in operations that find() does not find.
  bool hasOthers() const { return hasOthers_ && !functions_.isSet(); }
  // Calls the program's functions; those first that return operators. Nothing for an operator
  // without invoke.
  std::optional<TfLiteOperator> find(const tflite::FileOperator& source) const;

 private:
  ResolverFunctions functions_;
  std::vector<AddedOperator> added_;
  bool hasOthers_;
};

}  // namespace hearth::tflite_c

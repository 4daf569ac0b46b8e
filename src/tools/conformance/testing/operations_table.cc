// SPDX-License-Identifier: Apache-2.0
#include "tools/conformance/testing/operations_table.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <vector>

#include "base/format.h"
#include "drivers/cpu/plan/plan_builder.h"
#include "drivers/cpu/platform/kernel_traits.h"
#include "frontends/tflite/model_file.h"
#include "frontends/tflite/testing/sample_models.h"
#include "frontends/tflite/translators/translators.h"
#include "ops/operation.h"
#include "runtime/testing/random_graph.h"
#include "tools/conformance/case_model.h"

namespace hearth::conformance {
namespace {

using graph::OperandType;
using graph::OperationType;

constexpr std::array<const char*, 3> kKernels = {"xnnpack", "own", "reference"};
// Names of types by kernel.
using Kernels = std::map<std::string, std::set<std::string>>;

std::string shortName(OperandType type) {
  switch (type) {
    case OperandType::kTensorFloat32:
    case OperandType::kFloat32:
      return "float32";
    case OperandType::kTensorFloat16:
    case OperandType::kFloat16:
      return "float16";
    case OperandType::kTensorComplex64:
      return "complex64";
    case OperandType::kTensorString:
      return "string";
    case OperandType::kTensorFloat64:
      return "float64";
    case OperandType::kTensorInt32:
    case OperandType::kInt32:
      return "int32";
    case OperandType::kTensorUint32:
    case OperandType::kUint32:
      return "uint32";
    case OperandType::kTensorInt64:
      return "int64";
    case OperandType::kTensorUint64:
      return "uint64";
    case OperandType::kTensorInt16:
      return "int16";
    case OperandType::kTensorUint16:
      return "uint16";
    case OperandType::kTensorBool8:
    case OperandType::kBool:
      return "bool8";
    case OperandType::kTensorQuant8Asymm:
      return "quant8";
    case OperandType::kTensorQuant8AsymmSigned:
      return "quant8 signed";
    case OperandType::kTensorQuant8Symm:
    case OperandType::kTensorQuant8SymmPerChannel:
      return "quant8 symmetric";
    case OperandType::kTensorQuant16Symm:
      return "quant16 symmetric";
    case OperandType::kTensorQuant16Asymm:
      return "quant16";
    case OperandType::kTensorInt4:
      return "int4";
    default:
      return graph::nameOf(type);
  }
}

// The type of the first tensor, and that of a layer's weights if it differs.
std::string typeOf(const graph::Subgraph& main, const graph::Operation& operation) {
  std::string name;
  for (const uint32_t input : operation.inputs) {
    const graph::Operand& operand = main.operands[input];
    if (!operand.hasValue() || graph::isScalar(operand.type)) continue;
    name = shortName(operand.type);
    break;
  }
  if (name.empty() && !operation.outputs.empty())
    name = shortName(main.operands[operation.outputs[0]].type);
  const bool hasWeights = operation.type == OperationType::kConv2d ||
                          operation.type == OperationType::kDepthwiseConv2d ||
                          operation.type == OperationType::kFullyConnected;
  if (name == "float32" && hasWeights) {
    const std::string weights = shortName(main.operands[operation.inputs[1]].type);
    if (weights == "int4") return name + " with int4";
    if (weights != name) return name + " with 8-bit weights";
  }
  return name;
}

// Whether a tensor of the operation is empty. Then a reference kernel runs it, which does nothing.
bool hasEmptyTensor(const cpu::PlanBuilder& builder, const graph::Operation& operation) {
  const auto isEmpty = [&](uint32_t operand) {
    return builder.tensor(operand).elementCount() == 0;
  };
  return std::ranges::any_of(operation.inputs, isEmpty) ||
         std::ranges::any_of(operation.outputs, isEmpty);
}

bool isWeight(const cpu::PlanBuilder& builder, const graph::Operation& operation) {
  return std::ranges::all_of(
      operation.outputs, [&](uint32_t operand) { return builder.constants().isWeight(operand); });
}

class Collector {
 public:
  void add(const graph::Model& model) {
    if (!graph::validate(model) || !ops::validateOperations(model)) return;
    // A model with unknown shapes or branches has no execution graph, so no kernels are known.
    cpu::PlanBuilder builder(model, nullptr, {});
    if (!builder.build()) return;
    const std::vector<cpu::PlanBuilder::OperationKernel> kernels = builder.takeKernels();
    const graph::Subgraph& main = model.main();
    for (size_t i = 0; i < kernels.size(); ++i) {
      if (hasEmptyTensor(builder, main.operations[i])) continue;
      // What depends on constants alone is computed while the model is prepared.
      const std::string& kind = kernels[i].kind;
      if (kind == "none" && isWeight(builder, main.operations[i])) continue;
      // An operation that only renames memory has no kernel, which is the best implementation.
      const std::string kernel = kind == "none" ? "own" : kind;
      operations_[main.operations[i].type][kernel].insert(typeOf(main, main.operations[i]));
    }
  }

  const std::map<OperationType, Kernels>& operations() const { return operations_; }

 private:
  std::map<OperationType, Kernels> operations_;
};

std::vector<std::string> filesIn(const std::filesystem::path& folder, const char* extension) {
  std::vector<std::string> files;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.path().extension() == extension) files.push_back(entry.path().string());
  std::ranges::sort(files);
  return files;
}

Status addCases(const std::string& data, Collector* collector) {
  const auto files = filesIn(std::filesystem::path(data) / "conformance", ".nntv");
  if (files.empty())
    return fail(ErrorCode::kNotFound, "There are no conformance cases below \"{}\".", data);
  for (const std::string& path : files) {
    HEARTH_ASSIGN(const NntvFile file, NntvFile::open(path));
    for (size_t i = 0; i < file.caseCount(); ++i) {
      HEARTH_ASSIGN(const Case testCase, file.readCase(i));
      if ((testCase.flags & kExpectFailure) != 0) continue;
      for (const Variant variant : variantsOf(testCase)) {
        if (variant == Variant::kDynamicOutputShape) continue;
        HEARTH_ASSIGN(const CaseModel model, buildModel(testCase, variant));
        collector->add(*model.model);
      }
    }
  }
  return {};
}

void addFile(const tflite::ModelFile& file, Collector* collector) {
  for (size_t i = 0; i < file.subgraphCount(); ++i)
    if (const auto imported = file.importSubgraph(i)) collector->add(*imported->model);
}

Status addModels(const std::string& data, Collector* collector) {
  for (const std::string& path : filesIn(std::filesystem::path(data) / "data/models", ".tflite")) {
    HEARTH_ASSIGN(const auto file, tflite::ModelFile::open(path));
    addFile(*file, collector);
  }
  for (const tflite::SampleModel& sample : tflite::sampleModels()) {
    HEARTH_ASSIGN(const memory::PoolRef pool, memory::Pool::anonymous(sample.bytes.size()));
    std::memcpy(pool->mutableData(), sample.bytes.data(), sample.bytes.size());
    HEARTH_ASSIGN(const auto file, tflite::ModelFile::fromPool(pool));
    addFile(*file, collector);
  }
  return {};
}

void addRandomGraphs(Collector* collector) {
  constexpr uint64_t kGraphs = 2500;
  for (uint64_t seed = 1; seed <= kGraphs; ++seed)
    collector->add(*runtime::makeRandomGraph(seed, 30).model);
}

std::string joined(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string kernelTable(const Collector& collector) {
  std::string text =
      "| operation | on XNNPACK | on kernels of ours | on shared kernels |\n|---|---|---|---|\n";
  std::map<std::string, OperationType> byName;
  for (const ops::OperationDefinition* definition : ops::allOperations())
    byName[graph::nameOf(definition->type)] = definition->type;
  for (const auto& [name, type] : byName) {
    const auto found = collector.operations().find(type);
    text += "| " + name;
    for (const char* kernel : kKernels) {
      std::string types;
      if (found != collector.operations().end() && found->second.contains(kernel))
        types = joined(found->second.at(kernel));
      text += " | " + types;
    }
    text += " |\n";
  }
  return text;
}

std::string tfliteTable() {
  using tflite::schema::BuiltinOperator;
  std::string text = "| TFLite operation | code | becomes |\n|---|---|---|\n";
  for (const BuiltinOperator code : tflite::schema::EnumValuesBuiltinOperator()) {
    const tflite::TranslatorEntry* entry = tflite::findTranslator(code);
    if (entry == nullptr) continue;
    text += base::formatText("| {} | {} | {} |\n", tflite::schema::EnumNameBuiltinOperator(code),
                             static_cast<int>(code), graph::nameOf(entry->type));
  }
  for (const tflite::CustomTranslatorEntry& custom : tflite::customTranslators())
    text += base::formatText("| {} | {}, custom | {} |\n", custom.name,
                             static_cast<int>(BuiltinOperator::CUSTOM),
                             graph::nameOf(custom.translator.type));
  return text;
}

}  // namespace

Result<std::string> operationsTable(const std::string& data) {
  HEARTH_TRY(cpu::initializeXnnpack());
  Collector collector;
  addRandomGraphs(&collector);
  HEARTH_TRY(addCases(data, &collector));
  HEARTH_TRY(addModels(data, &collector));
  return "# Operations\n\n"
         "This page is written by `operations_table_test`; with `HEARTH_UPDATE_DOCS=1` it writes "
         "the page anew.\n\n"
         "## Kernels\n\n"
         "The device `nnapi-reference` runs every operation, in every type that its signature "
         "allows, on its reference kernel; the few that have none run on the kernel of `src/ops`, "
         "which the column of shared kernels means. The device `hearth-cpu` takes the same "
         "operations and types. "
         "The table says on which kernels it runs those of NNAPI's conformance cases, of the "
         "shared "
         "models, of the front end's samples and of random graphs, by the type of the first "
         "tensor: "
         "a type stands in two columns where shapes, quantisation or parameters decide. Operations "
         "that only rename "
         "memory count as ours. Where a shape is known only at run time, the model is interpreted "
         "on shared kernels. IF and WHILE are a step of the graph and count as ours. The table is "
         "of "
         "a CPU with AVX-512 VNNI. Without it small float32 layers with 8-bit weights run on "
         "XNNPACK, "
         "and int8 and uint8 fully connected layers on a kernel of "
         "ours. Without AVX2 all convolutions and fully connected layers run on "
         "XNNPACK.\n\n" +
         kernelTable(collector) +
         "\n## Operations of .tflite files\n\n"
         "Every version of an operation is read: what a version adds stands in the tensors' types "
         "and the options, which are checked one by one, so that a file of a newer converter works "
         "as long as it holds nothing new. Composites become RMS_NORM, GROUP_NORM or "
         "SCALED_DOT_PRODUCT_ATTENTION, others their decomposition. Some operations become "
         "several; the table names the one that does the work. A custom operation that is not in "
         "the table becomes CUSTOM if the program brings its operator along "
         "([frontends.md](frontends.md#custom-operators)).\n\n" +
         tfliteTable();
}

}  // namespace hearth::conformance

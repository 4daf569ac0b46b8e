// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite_c/subgraph_compiler.h"

#include <algorithm>
#include <chrono>

#include "base/sha256.h"
#include "frontends/tflite/other_shapes.h"
#include "ops/specialized_model.h"
#include "runtime/compilation.h"
#include "runtime/device_manager.h"
#include "runtime/start_record.h"

namespace hearth::tflite_c {
namespace {

using Shapes = std::vector<graph::Dimensions>;

constexpr size_t kMostOthers = 8;

// One token for each program's token, subgraph and choice of shapes that the file does not have.
std::shared_ptr<const runtime::CacheRequest> cacheRequest(const delegate::DelegateOptions& options,
                                                          size_t subgraph, const Shapes& shapes) {
  base::Sha256 hash;
  hash.update(options.modelToken.data(), options.modelToken.size());
  hash.update(&subgraph, sizeof(subgraph));
  for (const graph::Dimensions& shape : shapes) {
    const auto rank = static_cast<uint32_t>(shape.size());
    hash.update(&rank, sizeof(rank));
    hash.update(shape.data(), shape.size() * sizeof(uint32_t));
  }
  runtime::CacheRequest request;
  request.folder = options.cacheFolder;
  request.token = hash.finish();
  return std::make_shared<const runtime::CacheRequest>(std::move(request));
}

// The shapes of the clients' inputs and behind them those of the states.
Shapes withStates(const graph::Model& model, const Shapes& shapes) {
  Shapes all = shapes;
  const graph::Subgraph& main = model.main();
  for (size_t i = all.size(); i < main.inputs.size(); ++i)
    all.push_back(main.operands[main.inputs[i]].dimensions);
  return all;
}

// Shapes that come later use the kernels for which the first ones were packed. Those of the file
// come first, whatever shapes a program has, so results do not depend on its earlier shapes.
Shapes shapesOfFile(const tflite::ImportedGraph& graph) {
  Shapes shapes;
  for (const tflite::TensorInfo& input : graph.inputs) shapes.push_back(input.defaultDimensions());
  return shapes;
}

}  // namespace

std::vector<std::optional<graph::Dimensions>> CompiledSubgraph::outputShapes(
    const Shapes& inputs) const {
  std::vector<std::optional<graph::Dimensions>> found;
  if (execution == nullptr) {
    for (const ops::InferredOutput& each : inferred) found.emplace_back(each.dimensions);
    return found;
  }
  const auto read = [&](const graph::Subgraph& main) {
    found.clear();
    for (const uint32_t output : main.outputs) {
      const graph::Operand& operand = main.operands[output];
      found.push_back(graph::isFullySpecified(operand) ? std::optional(operand.dimensions)
                                                       : std::nullopt);
    }
  };
  read(model->main());
  if (!hasUnknownInputs || std::ranges::all_of(found, [](const auto& each) { return !!each; }))
    return found;
  // What it cannot tell, a run tells.
  if (const auto special = ops::specialize(*model, withStates(*model, inputs)))
    read(special->model->main());
  return found;
}

Status SubgraphCompiler::setPlans(tflite::SubgraphPlans plans) {
  auto imported = file_->importSubgraph(subgraph_, tflite::Shapes::kAsInFile, &plans);
  if (!imported && declared_) return std::unexpected(std::move(imported.error()));
  declared_ = std::move(imported);
  plans_ = std::move(plans);
  forDeclared_ = nullptr;
  others_.clear();
  open_.reset();
  return {};
}

bool SubgraphCompiler::hasDynamicShapes(const Shapes& shapes) const {
  if (!declared_) return false;
  const graph::Model& model = *declared_->model;
  const auto isKnown = [](const graph::Operand& operand) {
    return operand.isConstant() || !operand.hasValue() || graph::isFullySpecified(operand);
  };
  if (std::ranges::all_of(model.main().operands, isKnown)) return false;
  const auto special = ops::specialize(model, withStates(model, shapes));
  return !special && special.error().code() == ErrorCode::kUnsupported;
}

bool SubgraphCompiler::allows(const Shapes& shapes) const {
  const graph::Subgraph& main = declared_->model->main();
  for (size_t i = 0; i < shapes.size(); ++i) {
    const graph::Operand& operand = main.operands[main.inputs[i]];
    const bool isUnranked =
        operand.dimensions.empty() && !operand.isRankZeroTensor && !graph::isScalar(operand.type);
    if (isUnranked) continue;
    const bool fits =
        shapes[i].size() == operand.dimensions.size() &&
        std::ranges::equal(shapes[i], operand.dimensions, [](uint32_t given, uint32_t known) {
          return known == 0 || given == known;
        });
    if (!fits) return false;
  }
  return true;
}

Status SubgraphCompiler::open() {
  if (open_) return {};
  HEARTH_ASSIGN(open_, file_->importSubgraph(subgraph_, tflite::Shapes::kOpen, &plans_));
  return {};
}

Result<std::shared_ptr<const CompiledSubgraph>> SubgraphCompiler::withoutElements(
    const Shapes& shapes) {
  HEARTH_TRY(open());
  auto made = std::make_shared<CompiledSubgraph>();
  HEARTH_ASSIGN(made->inferred, ops::inferOutputs(*open_->model, shapes));
  // Behind the clients' outputs are those of states, which stay as they are.
  made->inferred.resize(open_->outputs.size());
  for (size_t i = 0; i < open_->outputs.size(); ++i)
    if (!made->inferred[i].value)
      return fail(
          ErrorCode::kUnsupported,
          "The output \"{}\" has the shape {} though an input has no elements, and depends on "
          "others, which is not supported; give each input one element or more.",
          open_->outputs[i].name, graph::describeDimensions(made->inferred[i].dimensions));
  return made;
}

Result<tflite::ImportedGraph> SubgraphCompiler::resized(const Shapes& shapes) {
  HEARTH_TRY(open());
  tflite::ImportedGraph graph = *open_;
  const Status followed = tflite::followShapes(shapes, &graph);
  if (followed) return graph;
  const Status inferred = tflite::inferShapesAgain(shapes, &graph);
  if (inferred) return graph;
  // The first says why the model's constants do not fit the shapes.
  const bool isRefused = followed.error().code() == ErrorCode::kUnsupported;
  return std::unexpected(isRefused ? followed.error() : inferred.error());
}

Result<std::shared_ptr<const CompiledSubgraph>> SubgraphCompiler::compileModel(
    const tflite::ImportedGraph& graph, const Shapes& shapes, bool isDeclared,
    const delegate::DelegateOptions& options) const {
  const auto begin = std::chrono::steady_clock::now();
  auto made = std::make_shared<CompiledSubgraph>();
  made->model = graph.model;
  made->hasUnknownInputs = ops::hasUnknownInputs(*graph.model);
  runtime::CompilationOptions wanted = options.compilation;
  wanted.prepare.threads = options.threads;
  if (made->hasUnknownInputs)
    wanted.prepare.expectedInputs =
        withStates(*graph.model, isDeclared ? shapesOfFile(graph) : shapes);
  if (!options.cacheFolder.empty())
    wanted.cache = cacheRequest(options, subgraph_, isDeclared ? Shapes() : shapes);
  std::shared_ptr<const graph::Model> model = graph.model;
  if (options.allowsFp16) {
    auto relaxed = std::make_shared<graph::Model>(*model);
    relaxed->relaxFloat32ToFloat16 = true;
    model = std::move(relaxed);
  }
  HEARTH_ASSIGN(auto compilation,
                runtime::Compilation::create(std::move(model), graph.states, wanted,
                                             runtime::DeviceManager::shared()));
  if (runtime::isReportWanted()) {
    runtime::StartRecord record;
    record.device = compilation->deviceNames();
    record.cache = compilation->cacheOutcome();
    record.choice = compilation->parts().reason;
    record.prepareMs =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    record.setReport(compilation->preparedModel().startReportSoFar());
    runtime::appendToReport(record);
  }
  HEARTH_ASSIGN(made->execution, runtime::Execution::create(std::move(compilation)));
  return made;
}

Result<std::shared_ptr<const CompiledSubgraph>> SubgraphCompiler::compile(
    const Shapes& shapes, const delegate::DelegateOptions& options) {
  if (!declared_) return std::unexpected(declared_.error());
  const auto isEmpty = [](const graph::Dimensions& shape) {
    return std::ranges::contains(shape, 0u);
  };
  if (std::ranges::any_of(shapes, isEmpty)) return withoutElements(shapes);
  if (allows(shapes)) {
    if (forDeclared_ == nullptr) {
      HEARTH_ASSIGN(forDeclared_, compileModel(*declared_, shapes, true, options));
    }
    return forDeclared_;
  }
  const auto known =
      std::ranges::find(others_, shapes, [](const auto& each) { return each.first; });
  if (known != others_.end()) {
    others_.splice(others_.end(), others_, known);
    return others_.back().second;
  }
  HEARTH_ASSIGN(const tflite::ImportedGraph graph, resized(shapes));
  HEARTH_ASSIGN(Compiled made, compileModel(graph, shapes, false, options));
  others_.emplace_back(shapes, made);
  if (others_.size() > kMostOthers) others_.pop_front();
  return made;
}

}  // namespace hearth::tflite_c

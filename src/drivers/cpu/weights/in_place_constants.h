// SPDX-License-Identifier: Apache-2.0
// Constants that kernels read where they lie in the model's file, between weights that nobody reads
// when those come from the store: factors of norms, biases, tables of embeddings.
#pragma once

#include "graph/model.h"

namespace hearth::cpu {

// From now on, reading a row of a large table that is not in memory brings in that row and not what
// lies around it, megabytes by default. Best effort.
void expectLookups(const graph::Model& model);

// Begins to read the small constants and tables that are not in memory, and does not wait for them.
// Each would otherwise stop the first inference, which has to queue for the disk behind the packed
// weights, and would bring in what lies around it. Best effort.
void readSmallConstantsAhead(const graph::Model& model);

}  // namespace hearth::cpu

// SPDX-License-Identifier: Apache-2.0
// Constants that kernels read in place, in the model's file: factors of norms, biases, tables of
// embeddings. They lie between weights that nobody reads when the packed ones come from the store.
#pragma once

#include <vector>

#include "graph/model.h"

namespace hearth::cpu {

// The tables of 8 MiB and more that operations look rows up in and that nothing else reads. What is
// packed never depends on them. In the order of the operations, each once.
std::vector<graph::DataLocation> tablesOnlyLookedUp(const graph::Model& model);

// Turns off read-ahead for large tables of look-ups: reading a row that is not in memory then
// brings in its pages only, and not the megabytes around them. Best effort.
void expectLookups(const graph::Model& model);

// Begins to read the small constants and tables that are not in memory, and does not wait for them.
// Otherwise the first inference would stop at each of them, queue for the disk behind the packed
// weights, and read what lies around it. Best effort.
void readSmallConstantsAhead(const graph::Model& model);

}  // namespace hearth::cpu

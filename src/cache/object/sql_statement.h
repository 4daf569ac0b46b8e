// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sqlite3.h>

#include <cstddef>
#include <memory>
#include <string_view>

#include "base/file_size_signal.h"
#include "base/fork_gate.h"

namespace hearth::cache {

struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using SqlStatement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

// Closes a database that may be open.
inline void closeDatabase(sqlite3*& database) {
  // SQLite takes locks of the whole process, which a forked child must not find taken.
  const base::ForkGate::Inside inside;
  const base::FileSizeSignalOff signalOff;
  if (database != nullptr) sqlite3_close(database);
  database = nullptr;
}

// Null, with SQLite's code, when the statement cannot be prepared.
inline SqlStatement prepareStatement(sqlite3* database, std::string_view text, int& code) {
  sqlite3_stmt* statement = nullptr;
  code =
      sqlite3_prepare_v2(database, text.data(), static_cast<int>(text.size()), &statement, nullptr);
  return SqlStatement(statement);
}

// Whether a column of the current row holds so many bytes: a database is a file that others may
// have damaged.
inline bool isBlobOf(sqlite3_stmt* statement, int column, size_t size) {
  return sqlite3_column_type(statement, column) == SQLITE_BLOB &&
         sqlite3_column_bytes(statement, column) == static_cast<int>(size);
}

}  // namespace hearth::cache

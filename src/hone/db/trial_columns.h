// db/trial_columns.h - how a record becomes a row of the table `trial` and a row a record (internal
// to db). The columns are the fields of db/record_fields.h under the same names, so that a new
// field needs only its line there, its column in both schemas, and a line in kLater if older files
// lack it (a list, whose empty value differs from dialect to dialect, also one in Dialect).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hone/db/sql_database.h"
#include "hone/trial/record.h"

namespace hone::db {

// Returns the SQL of a column, or of its value in tables of a version that lack it.
[[nodiscard]] std::string column_of(std::string_view field, int64_t version);
// Returns "SELECT ... FROM trial JOIN ... " with the columns that read_trial() reads. `extra` is
// one more column, or empty.
[[nodiscard]] std::string select_trials(int64_t version, std::string_view extra = {});

// Reads a row of select_trials(), and the text of the extra column if `extra` is not null. With
// `unchecked`, numbers that check_numbers() refuses are read, too: for callers that have called
// verify(), so that each record can be looked at. `store` is the store's name in messages.
[[nodiscard]] Result<trial::Record> read_trial(const Row& row, const std::string& store,
                                               bool unchecked = false,
                                               std::string* extra = nullptr);

// Returns the statement that adds a trial, whose parameters are those of trial_parameters(), and
// which gives its id back.
[[nodiscard]] const std::string& insert_trial();
// `task` and `device` are ids. The parameters refer to the record.
[[nodiscard]] std::vector<Parameter> trial_parameters(const trial::Record& record, int64_t task,
                                                      int64_t device);

}  // namespace hone::db

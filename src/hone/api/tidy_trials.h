// api/tidy_trials.h - removes trials of a store that nobody will ask for.
#pragma once

#include "hone/database.h"
#include "hone/db/store.h"

namespace hone {

[[nodiscard]] Result<TidyResult> tidy_trials(db::Store& store, const TidyOptions& options);

}  // namespace hone

// db/trial_info.h - makes trials as the public interface has them.
#pragma once

#include "hone/database.h"
#include "hone/trial/record.h"

namespace hone::db {

[[nodiscard]] TrialInfo info_of(trial::Record&& record);

}  // namespace hone::db

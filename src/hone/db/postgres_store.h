// db/postgres_store.h - a store on a PostgreSQL server, for many tuners on many machines. Its
// tables are those of the SQLite store (docs/formats/db_format.md). Without libpq every function
// returns an error.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "hone/base/status.h"
#include "hone/db/store.h"
#include "hone/trial/roofline.h"

namespace hone::db {

// Opens postgres://user:password@host:port/database. Missing tables are created if `options` allow
// it; max_bytes is ignored.
[[nodiscard]] Result<std::unique_ptr<Store>> open_postgres_store(std::string_view uri,
                                                                 const StoreOptions& options = {});

// These work as the functions in db/roofline_store.h do.
[[nodiscard]] Status save_postgres_roofline(std::string_view uri, const std::string& device,
                                            const trial::Roofline& roofline);
[[nodiscard]] Result<std::optional<trial::Roofline>> load_postgres_roofline(
    std::string_view uri, const std::string& device);

}  // namespace hone::db

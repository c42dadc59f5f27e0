// db/postgres_store.h - a store on a PostgreSQL server, for many tuners on many machines: the same
// tables as the SQLite store's (docs/formats/db_format.md). Where libpq is missing all of this is
// an error.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "hone/base/status.h"
#include "hone/db/store.h"
#include "hone/trial/roofline.h"

namespace hone::db {

// `uri`: postgres://user:password@host:port/database. The tables are made if they are missing and
// `options` allow it; max_bytes means nothing here.
[[nodiscard]] Result<std::unique_ptr<Store>> open_postgres_store(std::string_view uri,
                                                                 const StoreOptions& options = {});

// As in db/roofline_store.h.
[[nodiscard]] Status save_postgres_roofline(std::string_view uri, const std::string& device,
                                            const trial::Roofline& roofline);
[[nodiscard]] Result<std::optional<trial::Roofline>> load_postgres_roofline(
    std::string_view uri, const std::string& device);

}  // namespace hone::db

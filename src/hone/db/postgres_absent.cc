#include "hone/db/postgres_store.h"

namespace hone::db {
namespace {

Status absent() {
  return error(Code::kUnsupported,
               "--db: this hone was built without PostgreSQL (libpq-dev), expected a file name");
}

}  // namespace

Result<std::unique_ptr<Store>> open_postgres_store(std::string_view, const StoreOptions&) {
  return absent();
}
Status save_postgres_roofline(std::string_view, const std::string&, const trial::Roofline&) {
  return absent();
}
Result<std::optional<trial::Roofline>> load_postgres_roofline(std::string_view,
                                                              const std::string&) {
  return absent();
}

}  // namespace hone::db

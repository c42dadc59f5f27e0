#include "hone/artifact/system_symbols.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdint>
#include <vector>

namespace hone::artifact {
namespace {

constexpr const char* kLibraries[] = {
    "libc.so.6",  "libm.so.6",     "libpthread.so.0",      "libdl.so.2",
    "librt.so.1", "libcrypt.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"};
constexpr uint16_t kHiddenVersion = 0x8000;  // flag of an entry of DT_VERSYM

// The dynamic symbols of a loaded library. dlsym() would not do: it knows no versions but the
// default ones, and finds what a dependency or a sanitizer defines.
class DynamicSymbols {
 public:
  explicit DynamicSymbols(const link_map& library) {
    for (const ElfW(Dyn)* entry = library.l_ld; entry->d_tag != DT_NULL; ++entry) {
      // The loader of glibc has added the library's address, others have not.
      ElfW(Addr) address = entry->d_un.d_ptr;
      if (address < library.l_addr) address += library.l_addr;
      if (entry->d_tag == DT_SYMTAB) symbols_ = reinterpret_cast<const ElfW(Sym)*>(address);
      if (entry->d_tag == DT_STRTAB) names_ = reinterpret_cast<const char*>(address);
      if (entry->d_tag == DT_VERSYM) versions_ = reinterpret_cast<const uint16_t*>(address);
      if (entry->d_tag == DT_GNU_HASH) hash_ = reinterpret_cast<const uint32_t*>(address);
    }
  }

  [[nodiscard]] bool define(std::string_view name, bool linkable_only) const {
    if (symbols_ == nullptr || names_ == nullptr || hash_ == nullptr) return false;
    const uint32_t num_buckets = hash_[0], first = hash_[1], bloom_words = hash_[2];
    const uint32_t* buckets = hash_ + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t* chains = buckets + num_buckets;
    const uint32_t wanted = hash_of(name);
    uint32_t i = buckets[wanted % num_buckets];
    if (i < first) return false;
    while (true) {
      const uint32_t hash = chains[i - first];
      const ElfW(Sym)& symbol = symbols_[i];
      const bool visible =
          !linkable_only || versions_ == nullptr || (versions_[i] & kHiddenVersion) == 0;
      if ((hash | 1) == (wanted | 1) && visible && symbol.st_shndx != SHN_UNDEF &&
          name == names_ + symbol.st_name)
        return true;
      if ((hash & 1) != 0) return false;  // the last of its bucket
      ++i;
    }
  }

 private:
  // The hash is defined in https://sourceware.org/gnu-gabi/program-loading-and-dynamic-linking.txt.
  static uint32_t hash_of(std::string_view name) {
    uint32_t hash = 5381;
    for (const char c : name) hash = hash * 33 + static_cast<uint8_t>(c);
    return hash;
  }

  const ElfW(Sym) * symbols_ = nullptr;
  const char* names_ = nullptr;
  const uint16_t* versions_ = nullptr;
  const uint32_t* hash_ = nullptr;
};

struct SystemLibrary {
  const char* name;
  DynamicSymbols symbols;
};

// Those of this machine. They stay loaded, as most of them are anyway.
std::vector<SystemLibrary> load_libraries() {
  std::vector<SystemLibrary> libraries;
  for (const char* name : kLibraries) {
    void* library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    link_map* map = nullptr;
    if (library != nullptr && dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr)
      libraries.push_back({name, DynamicSymbols(*map)});
  }
  return libraries;
}

}  // namespace

std::optional<std::string> system_library_of(std::string_view symbol, bool linkable_only) {
  static const std::vector<SystemLibrary> libraries = load_libraries();
  for (const SystemLibrary& library : libraries) {
    if (library.symbols.define(symbol, linkable_only)) return library.name;
  }
  return std::nullopt;
}

}  // namespace hone::artifact

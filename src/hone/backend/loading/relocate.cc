#include "hone/backend/loading/relocate.h"

#include <cstring>

namespace hone::backend {
namespace {

template <typename T>
void store(char* place, T value) {
  std::memcpy(place, &value, sizeof value);
}

uint64_t address(const char* place) { return reinterpret_cast<uint64_t>(place); }

Status too_far() { return invalid("object: an address is too far away"); }

Status store_difference(char* place, uint64_t target) {
  const auto difference = static_cast<int64_t>(target - address(place));
  if (difference != static_cast<int32_t>(difference)) return too_far();
  store(place, static_cast<int32_t>(difference));
  return ok_status();
}

}  // namespace

#if defined(__aarch64__)

namespace {

uint32_t instruction(const char* place) {
  uint32_t word;
  std::memcpy(&word, place, sizeof word);
  return word;
}

uint64_t page(uint64_t value) { return value & ~uint64_t{0xfff}; }

// ADRP: the pages from this one to that of the address.
Status store_page(char* place, uint64_t target) {
  const int64_t pages = static_cast<int64_t>(page(target) - page(address(place))) >> 12;
  if (pages < -(1 << 20) || pages >= (1 << 20)) return too_far();
  const auto bits = static_cast<uint32_t>(pages);
  store(place,
        (instruction(place) & 0x9f00001fU) | ((bits & 3U) << 29) | (((bits >> 2) & 0x7ffffU) << 5));
  return ok_status();
}

// The offset in the page, in units of 2^shift bytes.
Status store_low(char* place, uint64_t target, int shift) {
  const auto low = static_cast<uint32_t>(target & 0xfff);
  if ((low & ((1U << shift) - 1)) != 0) return invalid("object: an address is not aligned");
  store(place, (instruction(place) & ~(0xfffU << 10)) | ((low >> shift) << 10));
  return ok_status();
}

// Branches: the words from here, in so many bits from `position` on.
Status store_branch(char* place, uint64_t target, int bits, int position) {
  const int64_t words = static_cast<int64_t>(target - address(place)) >> 2;
  const int64_t most = int64_t{1} << (bits - 1);
  if (words < -most || words >= most) return too_far();
  const uint32_t mask = ((1U << bits) - 1) << position;
  store(place, (instruction(place) & ~mask) | ((static_cast<uint32_t>(words) << position) & mask));
  return ok_status();
}

}  // namespace

int relocated_bytes(uint32_t type) {
  return type == R_AARCH64_ABS64 || type == R_AARCH64_PREL64 ? 8 : 4;
}

Status relocate(const Relocation& r) {
  const uint64_t target = r.target + static_cast<uint64_t>(r.addend);
  const uint64_t jump = r.jump + static_cast<uint64_t>(r.addend);
  const uint64_t slot = r.slot + static_cast<uint64_t>(r.addend);
  switch (r.type) {
    case R_AARCH64_ABS64: store(r.place, target); return ok_status();
    case R_AARCH64_PREL64: store(r.place, target - address(r.place)); return ok_status();
    case R_AARCH64_PREL32: return store_difference(r.place, target);
    case R_AARCH64_ADR_PREL_PG_HI21: return store_page(r.place, target);
    case R_AARCH64_ADD_ABS_LO12_NC:
    case R_AARCH64_LDST8_ABS_LO12_NC: return store_low(r.place, target, 0);
    case R_AARCH64_LDST16_ABS_LO12_NC: return store_low(r.place, target, 1);
    case R_AARCH64_LDST32_ABS_LO12_NC: return store_low(r.place, target, 2);
    case R_AARCH64_LDST64_ABS_LO12_NC: return store_low(r.place, target, 3);
    case R_AARCH64_LDST128_ABS_LO12_NC: return store_low(r.place, target, 4);
    case R_AARCH64_ADR_GOT_PAGE: return store_page(r.place, slot);
    case R_AARCH64_LD64_GOT_LO12_NC: return store_low(r.place, slot, 3);
    case R_AARCH64_CALL26:
    case R_AARCH64_JUMP26: return store_branch(r.place, jump, 26, 0);
    case R_AARCH64_CONDBR19: return store_branch(r.place, target, 19, 5);
    case R_AARCH64_TSTBR14: return store_branch(r.place, target, 14, 5);
    default: return invalid("object: a relocation of the unknown type {}", r.type);
  }
}

void write_jump(char* place, uint64_t target) {
  store(place, uint32_t{0x58000050});      // ldr x16, .+8
  store(place + 4, uint32_t{0xd61f0200});  // br x16
  store(place + 8, target);
}

#else

int relocated_bytes(uint32_t type) { return type == R_X86_64_64 || type == R_X86_64_PC64 ? 8 : 4; }

Status relocate(const Relocation& r) {
  const auto addend = static_cast<uint64_t>(r.addend);
  switch (r.type) {
    case R_X86_64_64: store(r.place, r.target + addend); return ok_status();
    case R_X86_64_PC64: store(r.place, r.target + addend - address(r.place)); return ok_status();
    case R_X86_64_PC32:
    case R_X86_64_PLT32: return store_difference(r.place, r.jump + addend);
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX: return store_difference(r.place, r.slot + addend);
    default: return invalid("object: a relocation of the unknown type {}", r.type);
  }
}

void write_jump(char* place, uint64_t target) {
  store(place, uint32_t{0x000025ff});  // jmp *0(%rip)
  store(place + 4, uint16_t{0});
  store(place + 6, target);
}

#endif

}  // namespace hone::backend

#include "hone/base/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace hone {
namespace {

struct Range {
  uint32_t first, last;
};

// Unicode's controls, format characters and others that are drawn as nothing, in order.
constexpr Range kHidden[] = {
    {0x00, 0x1f},       // C0
    {0x7f, 0x9f},       // delete, C1: 0x9b alone begins a sequence
    {0xad, 0xad},       // soft hyphen
    {0x34f, 0x34f},     // grapheme joiner
    {0x61c, 0x61c},     // Arabic letter mark
    {0x115f, 0x1160},   // Hangul fillers
    {0x17b4, 0x17b5},   // Khmer inherent vowels
    {0x180e, 0x180e},   // Mongolian vowel separator
    {0x200b, 0x200f},   // zero width, left-to-right and right-to-left marks
    {0x2028, 0x202e},   // separators of lines and paragraphs, embeddings, overrides
    {0x2060, 0x206f},   // word joiner, invisible operators, isolates
    {0x3164, 0x3164},   // Hangul filler
    {0xfeff, 0xfeff},   // byte order mark
    {0xffa0, 0xffa0},   // Hangul filler of half width
    {0xfff9, 0xfffb},   // annotations
    {0xe0000, 0xe0fff}  // tags, variation selectors
};

bool is_hidden(uint32_t code) {
  const Range* const range = std::upper_bound(
      std::begin(kHidden), std::end(kHidden), code,
      [](uint32_t value, const Range& candidate) { return value < candidate.first; });
  return range != std::begin(kHidden) && code <= std::prev(range)->last;
}

struct Character {
  uint32_t code = 0;
  size_t bytes = 1;
  bool valid = false;  // else one byte that begins no character
};

// The first character, as RFC 3629 defines it: the shortest form only, no surrogates.
Character first_character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(text[i])); };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const size_t bytes = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  if (bytes == 0 || bytes > text.size()) return {lead};
  uint32_t code = lead & (0xffU >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {lead};
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kLeast[bytes] || code > 0x10ffff || surrogate) return {lead};
  return {code, bytes, true};
}

std::string escape_for_json(const Character& character) {
  if (!character.valid) return "\\ufffd";
  if (character.code < 0x10000) return fmt::format("\\u{:04x}", character.code);
  const uint32_t rest = character.code - 0x10000;
  return fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (rest >> 10), 0xdc00 + (rest & 0x3ff));
}

// Escapes as JSON does, except for what JSON's own writer has escaped before.
std::string escape_for_people(const Character& character) {
  if (character.valid && character.code >= 0x7f) return escape_for_json(character);
  return fmt::format("\\x{:02x}", character.code);
}

template <typename Escape>
std::string escaped(std::string_view text, bool keep_lines, const Escape& escape) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_character(text);
    const bool stays =
        character.valid && (!is_hidden(character.code) || (keep_lines && character.code == '\n'));
    if (stays) {
      result += text.substr(0, character.bytes);
    } else {
      result += escape(character);
    }
    text.remove_prefix(character.bytes);
  }
  return result;
}

}  // namespace

std::string printable(std::string_view text) { return escaped(text, false, escape_for_people); }

std::string printable_lines(std::string_view text) {
  return escaped(text, true, escape_for_people);
}

std::string printable_json(std::string_view json) { return escaped(json, true, escape_for_json); }

std::string_view whole_characters(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return text;
  const auto continues = [&](size_t i) { return (static_cast<uint8_t>(text[i]) & 0xc0) == 0x80; };
  size_t end = bytes;
  while (end > 0 && bytes - end < 4 && continues(end)) --end;
  return text.substr(0, continues(end) ? bytes : end);  // not UTF-8: anywhere
}

}  // namespace hone

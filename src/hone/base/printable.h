// base/printable.h - makes texts from outside (names in a model, records, files, messages of a
// server) safe to show. A terminal obeys escape sequences in what it shows, which can move the
// cursor, change the window's title or hide lines, and marks of bidirectional text
// (https://trojansource.codes) show a line in another order than it has. All of these become
// visible escapes: \x1b, \u202e.
#pragma once

#include <string>
#include <string_view>

namespace hone {

// Returns the text on one line. Every control character (also a line end or a tab), every character
// that is invisible or changes the direction of text, and every byte that is not UTF-8 is escaped.
// Other characters of any script stay, and so does a backslash.
[[nodiscard]] std::string printable(std::string_view text);
// Escapes as printable() does, but keeps line ends, for texts of many lines whose parts come from
// outside.
[[nodiscard]] std::string printable_lines(std::string_view text);
// Escapes the text of a JSON value that is valid UTF-8: what printable_lines() escapes becomes an
// escape of JSON, so a reader gets the same strings.
[[nodiscard]] std::string printable_json(std::string_view json);

// Returns the longest prefix of at most `bytes` bytes that does not end within a character.
[[nodiscard]] std::string_view whole_characters(std::string_view text, size_t bytes);

}  // namespace hone

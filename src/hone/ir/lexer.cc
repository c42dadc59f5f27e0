#include "hone/ir/lexer.h"

#include <algorithm>

namespace hone::ir {
namespace {

constexpr std::string_view kSigns[] = {"..", "//", "<=", "==", "!=", "&&", "||", "{",
                                       "}",  "[",  "]",  "(",  ")",  ",",  ":",  "=",
                                       "<",  "+",  "-",  "*",  "/",  "%",  "!"};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Result<std::vector<Token>> run() {
    while (true) {
      skip_space();
      if (at_ == text_.size()) break;
      HONE_RETURN_IF_ERROR(next());
    }
    tokens_.push_back({Token::kEnd, "end of text", line_, column()});
    return std::move(tokens_);
  }

 private:
  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  int column() const { return static_cast<int>(at_ - line_start_) + 1; }

  void skip_space() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_;
        line_start_ = at_ + 1;
      } else if (c == '#') {
        while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
      } else if (c != ' ' && c != '\t' && c != '\r') {
        return;
      }
      ++at_;
    }
  }

  void add(Token::Kind kind, size_t length) {
    tokens_.push_back({kind, text_.substr(at_, length), line_, column()});
    at_ += length;
  }

  Status next() {
    if (is_letter(peek())) {
      size_t n = 1;
      while (is_letter(peek(n)) || is_digit(peek(n)) ||
             (peek(n) == '.' && (is_letter(peek(n + 1)) || is_digit(peek(n + 1)))))
        ++n;
      add(Token::kWord, n);
      return ok_status();
    }
    if (is_digit(peek())) {
      number();
      return ok_status();
    }
    if (peek() == '"') return string();
    for (const std::string_view sign : kSigns) {
      if (text_.substr(at_, sign.size()) == sign) {
        add(Token::kSign, sign.size());
        return ok_status();
      }
    }
    const auto byte = static_cast<unsigned char>(peek());
    if (byte > ' ' && byte < 127)
      return invalid("line {}, column {}: unexpected character '{}'", line_, column(), peek());
    return invalid("line {}, column {}: unexpected byte 0x{:02x}", line_, column(), byte);
  }

  void number() {
    size_t n = 0;
    bool real = false;
    while (is_digit(peek(n))) ++n;
    if (peek(n) == '.' && is_digit(peek(n + 1))) {
      real = true;
      for (++n; is_digit(peek(n));) ++n;
    }
    const size_t sign = peek(n + 1) == '+' || peek(n + 1) == '-' ? 1 : 0;
    if (peek(n) == 'e' && is_digit(peek(n + 1 + sign))) {
      real = true;
      for (n += 1 + sign; is_digit(peek(n));) ++n;
    }
    add(real ? Token::kReal : Token::kInteger, n);
  }

  Status string() {
    size_t n = 1;
    while (peek(n) != '"') {
      if (at_ + n >= text_.size() || peek(n) == '\n')
        return invalid("line {}, column {}: a string without end", line_, column());
      n += peek(n) == '\\' ? 2 : 1;
    }
    ++at_;
    add(Token::kString, n - 1);
    ++at_;
    return ok_status();
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t line_start_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view text) { return Lexer(text).run(); }

}  // namespace hone::ir

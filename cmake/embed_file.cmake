# Writes OUT: the bytes of IN as a std::string_view NAMESPACE::NAME.
file(READ "${IN}" hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
file(WRITE "${OUT}" "#include <string_view>
namespace ${NAMESPACE} {
static constexpr char bytes[] = {${bytes}'\\0'};
extern const std::string_view ${NAME};
const std::string_view ${NAME}{bytes, sizeof bytes - 1};
}
")

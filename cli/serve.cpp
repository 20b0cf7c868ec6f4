#include "cli/serve.h"

#include <arpa/inet.h>
#include <csignal>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cstdlib>
#include <optional>
#include <string_view>

#include "unmoor/base/error.h"
#include "unmoor/base/stop.h"

namespace unmoor::cli {
namespace {

constexpr int patience_s = 10;
constexpr int most_header_bytes = 8 << 10;
constexpr int look_for_stop_us = 100'000;

struct FreeEvents {
  void operator()(event_base* base) const { ::event_base_free(base); }
  void operator()(evhttp* server) const { ::evhttp_free(server); }
  void operator()(event* timer) const { ::event_free(timer); }
  void operator()(evbuffer* buffer) const { ::evbuffer_free(buffer); }
};
template <class T>
using Owned = std::unique_ptr<T, FreeEvents>;

std::string decoded(const char* part) {
  size_t size = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(::evhttp_uridecode(part, 0, &size), &std::free);
  return text == nullptr ? std::string() : std::string(text.get(), size);
}

std::optional<Request> request_of(evhttp_request* request) {
  const evhttp_uri* const uri = ::evhttp_request_get_evhttp_uri(request);
  const char* const path = uri == nullptr ? nullptr : ::evhttp_uri_get_path(uri);
  if (path == nullptr || *path != '/' || ::evhttp_uri_get_host(uri) != nullptr) return std::nullopt;
  const std::string_view whole = ::evhttp_request_get_uri(request);
  if (whole.find("%00") != std::string_view::npos) return std::nullopt;  // It would end a name early.
  Request found{decoded(path), {}};
  if (const char* const query = ::evhttp_uri_get_query(uri); query != nullptr && *query != '\0') {
    evkeyvalq pairs{};
    if (::evhttp_parse_query_str(query, &pairs) != 0) return std::nullopt;
    for (const evkeyval* pair = pairs.tqh_first; pair != nullptr; pair = pair->next.tqe_next) found.query.emplace_back(pair->key, pair->value);
    ::evhttp_clear_headers(&pairs);
  }
  return found;
}

void answer(evhttp_request* request, const Response& response) {
  evkeyvalq* const headers = ::evhttp_request_get_output_headers(request);
  const auto add = [headers](const char* name, const std::string& value) { ::evhttp_add_header(headers, name, value.c_str()); };
  add("Content-Type", response.type);
  add("Cache-Control", "no-store");
  add("X-Content-Type-Options", "nosniff");
  add("Referrer-Policy", "no-referrer");
  add("Cross-Origin-Resource-Policy", "same-origin");
  add("X-Frame-Options", "DENY");
  if (!response.policy.empty()) add("Content-Security-Policy", response.policy);
  const Owned<evbuffer> body(::evbuffer_new());
  if (body == nullptr || ::evbuffer_add(body.get(), response.body.data(), response.body.size()) != 0) {
    ::evhttp_send_error(request, HTTP_INTERNAL, nullptr);
    return;
  }
  ::evhttp_send_reply(request, response.status, nullptr, body.get());
}

}  // namespace

struct LocalServer::Parts {
  Handler handler;
  uint16_t port = 0;
  Owned<event_base> base;
  Owned<evhttp> server;

  // Another name would be that of a foreign page which had its name lead here.
  bool is_ours(evhttp_request* request) const {
    const char* const host = ::evhttp_find_header(::evhttp_request_get_input_headers(request), "Host");
    return host != nullptr && (host == fmt::format("127.0.0.1:{}", port) || host == fmt::format("localhost:{}", port));
  }

  Response respond(evhttp_request* request) const {
    const Response refused{400, "text/plain; charset=utf-8", {}, "This address is not served here.\n"};
    if (!is_ours(request)) return refused;
    const auto asked = request_of(request);
    return asked ? handler(*asked) : refused;
  }

  static void on_request(evhttp_request* request, void* self) {
    try {
      answer(request, static_cast<const Parts*>(self)->respond(request));
    } catch (const std::exception& error) {  // Exceptions do not pass through the library.
      answer(request, {500, "text/plain; charset=utf-8", {}, fmt::format("{}\n", error.what())});
    }
  }

  static void look_for_stop(evutil_socket_t, short, void* self) {
    if (requested_stop() != 0) ::event_base_loopbreak(static_cast<Parts*>(self)->base.get());
  }
};

LocalServer::LocalServer(uint16_t port, Handler handler) : parts_(std::make_unique<Parts>()) {
  ::event_set_log_callback([](int, const char*) {});  // What a client does wrong is not the user's news.
  std::signal(SIGPIPE, SIG_IGN);                      // A client may leave at any time.
  parts_->handler = std::move(handler);
  parts_->base.reset(::event_base_new());
  if (parts_->base != nullptr) parts_->server.reset(::evhttp_new(parts_->base.get()));
  if (parts_->server == nullptr) fail(ErrorKind::Device, "a server cannot be made: the system gives no event queue");
  evhttp* const server = parts_->server.get();
  ::evhttp_set_allowed_methods(server, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
  ::evhttp_set_max_headers_size(server, most_header_bytes);
  ::evhttp_set_max_body_size(server, 0);
  ::evhttp_set_timeout(server, patience_s);
  ::evhttp_set_gencb(server, &Parts::on_request, parts_.get());
  evhttp_bound_socket* const socket = ::evhttp_bind_socket_with_handle(server, "127.0.0.1", port);
  if (socket == nullptr) fail(ErrorKind::Device, "port ", port, " of this machine cannot be had; another program may hold it: --port 0 takes a free one");
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  if (::getsockname(::evhttp_bound_socket_get_fd(socket), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    fail(ErrorKind::Device, "the system does not tell the server's port");
  parts_->port = ntohs(address.sin_port);
}

LocalServer::~LocalServer() = default;

uint16_t LocalServer::port() const { return parts_->port; }

void LocalServer::run() {
  const Owned<event> timer(::event_new(parts_->base.get(), -1, EV_PERSIST, &Parts::look_for_stop, parts_.get()));
  const timeval pause{0, look_for_stop_us};
  if (timer == nullptr || ::event_add(timer.get(), &pause) != 0) fail(ErrorKind::Device, "the server's clock cannot be started");
  ::event_base_dispatch(parts_->base.get());
}

}  // namespace unmoor::cli

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace unmoor::cli {

struct Request {
  std::string path;                                       // Decoded, begins with '/'.
  std::vector<std::pair<std::string, std::string>> query;  // Decoded, in order.
};

struct Response {
  int status = 200;
  std::string type = "text/html; charset=utf-8";
  std::string policy = {};  // Content-Security-Policy; empty: what the page itself says.
  std::string body = {};
};

// A server for this machine's own browser: listens on 127.0.0.1 only; answers GET and HEAD that name it as 127.0.0.1 or localhost, with
// headers of at most 8 KiB, and gives up on a client after 10 s of silence. Everything happens on the thread that calls `run`.
class LocalServer {
 public:
  using Handler = std::function<Response(const Request&)>;

  // Port 0 takes a free one. Fails with Device where the port cannot be had.
  LocalServer(uint16_t port, Handler handler);
  ~LocalServer();
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;

  uint16_t port() const;
  void run();  // Until somebody asks the process to stop: see base/stop.h.

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace unmoor::cli

import { execFileSync } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

const NGINX = process.env.NGINX ?? "nginx";

/** Version of the installed nginx; undefined without one. The environment variable NGINX selects another program. */
export function nginxVersion(): string | undefined {
  try {
    // nginx prints its version to stderr.
    return /nginx\/(\S+)/.exec(execFileSync("sh", ["-c", '"$0" -v 2>&1', NGINX]).toString())?.[1];
  } catch {
    return undefined;
  }
}

/**
 * Writes a configuration in which one process passes every request to the upstream over connections that stay open.
 * Streams are passed on as they arrive, without buffering.
 * @returns the command that starts nginx
 */
export async function prepareNginx(folder: string, port: number, upstreamPort: number): Promise<string[]> {
  const prefix = join(folder, "nginx");
  await mkdir(prefix, { recursive: true });
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  const text = `
daemon off;
master_process off;
pid nginx.pid;
error_log stderr;
events { worker_connections 16384; }
http {
  access_log off;
  ${temporary.map((name) => `${name}_temp_path ${name};`).join("\n  ")}
  keepalive_requests 1000000000;
  upstream vendor {
    server 127.0.0.1:${upstreamPort};
    keepalive 512;
    keepalive_requests 1000000000;
  }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / {
      proxy_pass http://vendor;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_read_timeout 10m;
    }
  }
}
`;
  const path = join(prefix, "nginx.conf");
  await writeFile(path, text);
  return [NGINX, "-p", prefix, "-c", path];
}

import type { DescMethod, Message } from "@bufbuild/protobuf";
import type { Run } from "../call/call.ts";

/** The expression for the paths of a template such as `/v1/models/{model}`. Braces stand for one segment. */
export function pathPattern(template: string): RegExp {
  return new RegExp(`^${template.replace(/\{(\w+)\}/g, "(?<$1>[^/]+)")}$`);
}

/** The same method, whose request gets the fields that are part of its path. */
export function withPathFields({ input }: DescMethod, template: string, run: Run): Run {
  if (!template.includes("{")) return run;
  const pattern = pathPattern(template);
  return (decoded, call) => {
    const request = decoded.request as Message & Record<string, unknown>;
    for (const [name, text] of Object.entries(pattern.exec(call.path)?.groups ?? {})) {
      const field = input.fields.find((each) => each.name === name);
      if (field) request[field.localName] = text;
    }
    return run(decoded, call);
  };
}

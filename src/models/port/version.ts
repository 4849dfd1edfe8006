/**
 * What vendors add to the name of a model for one version of it: a date (`-2024-08-06`, `-20240806`, `-08-2024`), a
 * number (`-0613`, `-001`, `-v1:0`) or `latest`. Other words, such as `-mini` or `-exp-0827`, name another product.
 */
const SUFFIX = /^(?:[-@:](?:\d{4}-\d{2}-\d{2}|\d{2}-\d{4}|\d{8}|\d{6}|\d{3,4}|v\d{1,3}|latest)|:\d)+$/;

/** Whether `name` is the model `base` or a dated version of it. Case and what stands before `/` do not count. */
export function isVersionOf(name: string, base: string): boolean {
  const [full, short] = [plain(name), plain(base)];
  if (full === short) return true;
  const stem = short.endsWith("-latest") ? short.slice(0, -"-latest".length) : short;
  return full === stem || (full.startsWith(stem) && SUFFIX.test(full.slice(stem.length)));
}

function plain(name: string): string {
  return name.slice(name.lastIndexOf("/") + 1).toLowerCase();
}

import { constants, crc32, deflateRawSync, deflateSync } from "node:zlib";

export interface PdfOptions {
  /** Compressed content streams, one per page. They replace the pages with a line of text. */
  contents?: Buffer[];
  /** Resources of each page, besides its font. */
  resources?: string;
  /** The font, `/F1` in the contents. */
  font?: string;
  /** More fonts of a page, by its place. */
  fonts?: (page: number) => string;
  /** More entries of the trailer, and objects that they refer to by number from 1000 on. */
  trailer?: string;
  objects?: Array<[number: number, body: string]>;
}

/** A PDF with one line of text per page, which must not contain parentheses or backslashes. */
export function pdf(lines: readonly string[], options: PdfOptions = {}): Buffer {
  const contents =
    options.contents ?? lines.map((line) => Buffer.from(`BT /F1 12 Tf 72 720 Td (${line}) Tj ET`, "latin1"));
  const filter = options.contents ? " /Filter /FlateDecode" : "";
  const kids = contents.map((_, i) => `${4 + 2 * i} 0 R`).join(" ");
  const objects: Array<[number, Array<string | Buffer>]> = [
    [1, ["<< /Type /Catalog /Pages 2 0 R >>"]],
    [2, [`<< /Type /Pages /Count ${contents.length} /Kids [${kids}] >>`]],
    [3, [options.font ?? "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]],
    ...contents.flatMap(
      (content, i): Array<[number, Array<string | Buffer>]> => [
        [
          4 + 2 * i,
          [
            `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents ${5 + 2 * i} 0 R ` +
              `/Resources << /Font << /F1 3 0 R ${options.fonts?.(i) ?? ""} >> ${options.resources ?? ""} >> >>`,
          ],
        ],
        [5 + 2 * i, [`<< /Length ${content.length}${filter} >>\nstream\n`, content, "\nendstream"]],
      ],
    ),
    ...(options.objects ?? []).map(([number, body]): [number, string[]] => [number, [body]]),
  ];
  const parts: Buffer[] = [Buffer.from("%PDF-1.7\n")];
  let length = 9;
  const offsets: Array<[number, number]> = [];
  for (const [number, body] of objects) {
    offsets.push([number, length]);
    for (const part of [`${number} 0 obj\n`, ...body, "\nendobj\n"]) {
      const bytes = Buffer.from(part as string, "latin1");
      parts.push(bytes);
      length += bytes.length;
    }
  }
  const xref = offsets.map(([number, at]) => `${number} 1\n${String(at).padStart(10, "0")} 00000 n \n`).join("");
  const size = Math.max(...offsets.map(([number]) => number)) + 1;
  parts.push(
    Buffer.from(
      `xref\n0 1\n0000000000 65535 f \n${xref}trailer\n` +
        `<< /Size ${size} /Root 1 0 R ${options.trailer ?? ""} >>\nstartxref\n${length}\n%%EOF`,
    ),
  );
  return Buffer.concat(parts);
}

/** A PDF that needs a password. */
export function encryptedPdf(): Buffer {
  const key = "ab".repeat(32);
  return pdf(["secret"], {
    trailer: `/Encrypt 1000 0 R /ID [<${key}> <${key}>]`,
    objects: [[1000, `<< /Filter /Standard /V 1 /R 2 /Length 40 /P -44 /O <${key}> /U <${key}> >>`]],
  });
}

/** A zip of files in raw deflate format, each with the size that its entry declares. */
export function zipOf(files: ReadonlyArray<{ name: string; packed: Buffer; size: number; crc?: number }>): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let at = 0;
  for (const { name, packed, size, crc = 0 } of files) {
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(8, 4);
    common.writeUInt32LE(crc, 10);
    common.writeUInt32LE(packed.length, 14);
    common.writeUInt32LE(size, 18);
    common.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from("PK\x03\x04"), common, Buffer.from(name)]);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(at, 10);
    directory.push(Buffer.concat([Buffer.from("PK\x01\x02\x14\x00"), common, tail, Buffer.from(name)]));
    parts.push(local, packed);
    at += local.length + packed.length;
  }
  const central = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(files.length, 4);
  end.writeUInt16LE(files.length, 6);
  end.writeUInt32LE(central.length, 8);
  end.writeUInt32LE(at, 12);
  return Buffer.concat([...parts, central, Buffer.from("PK\x05\x06"), end]);
}

/** A zip of text files. */
export function zip(files: Readonly<Record<string, string>>): Buffer {
  return zipOf(
    Object.entries(files).map(([name, text]) => {
      const bytes = Buffer.from(text);
      return { name, packed: deflateRawSync(bytes), size: bytes.length, crc: crc32(bytes) };
    }),
  );
}

export const DOCX_HEAD = {
  "[Content_Types].xml":
    '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">' +
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>' +
    '<Override PartName="/word/document.xml" ' +
    'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>',
  "_rels/.rels":
    '<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">' +
    '<Relationship Id="r1" ' +
    'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" ' +
    'Target="word/document.xml"/></Relationships>',
};

const WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main";

/** A Word document whose body is the given markup. */
export function docx(body: string): Buffer {
  const document = `<?xml version="1.0"?><w:document xmlns:w="${WORD}"><w:body>${body}</w:body></w:document>`;
  return zip({ ...DOCX_HEAD, "word/document.xml": document });
}

/** A paragraph, optionally with a style such as `Heading1`. */
export function paragraph(text: string, style?: string): string {
  const properties = style ? `<w:pPr><w:pStyle w:val="${style}"/></w:pPr>` : "";
  return `<w:p>${properties}<w:r><w:t>${text}</w:t></w:r></w:p>`;
}

/** Compressed data that inflates to this many megabytes of `unit`. It repeats one block, so it is quick to make. */
export function bomb(megabytes: number, format: "raw" | "zlib", unit = " "): Buffer {
  const block = deflateRawSync(Buffer.alloc(1024 * 1024, unit), { finishFlush: constants.Z_FULL_FLUSH });
  const raw = [...Array.from({ length: megabytes }, () => block), Buffer.from([3, 0])];
  return Buffer.concat(format === "raw" ? raw : [Buffer.from([0x78, 0x9c]), ...raw, Buffer.alloc(4)]);
}

/** A PNG of one colour, one bit a pixel. Its header can declare another size than its data has. */
export function png(
  width: number,
  height: number,
  data = deflateSync(Buffer.alloc((1 + Math.ceil(width / 8)) * height)),
): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = 1;
  const chunk = (name: string, body: Buffer) => {
    const out = Buffer.concat([Buffer.alloc(4), Buffer.from(name), body, Buffer.alloc(4)]);
    out.writeUInt32BE(body.length, 0);
    out.writeUInt32BE(crc32(out.subarray(4, 8 + body.length)), 8 + body.length);
    return out;
  };
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    chunk("IHDR", header),
    chunk("IDAT", data),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

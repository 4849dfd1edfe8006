/** An amount of US dollars: with cents, and small ones with four decimals. */
export function dollars(usd: number): string {
  const decimals = Math.abs(usd) > 0 && Math.abs(usd) < 1 ? 4 : 2;
  const text = Math.abs(usd).toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  return `${usd < 0 ? "−" : ""}$${text}`;
}

/** A news article of 330 words. */
export const ARTICLE =
  "The harbour city of Lindmark opened its first electric ferry line on Monday, linking the old fish market " +
  "with the new university campus across the bay. The crossing takes eleven minutes and replaces a bus " +
  "journey that often lasted three quarters of an hour at peak times.\n\n" +
  "The ferry, named Aurora, carries 180 passengers and 60 bicycles. Its batteries are charged overnight with " +
  "power from the wind farm at Cape Horsa, and a short top-up at each landing keeps it running all day. " +
  "According to the operator, Lindmark Transit, a full day of service costs about a third of what the diesel " +
  "boats needed for fuel.\n\n" +
  "Mayor Elin Sandberg called the line a turning point for a city that has argued about traffic for decades. " +
  '"We have built roads for sixty years and the queues only grew," she said at the opening. The city paid 42 ' +
  "million crowns for the vessel and the two landings, a third of it from a national climate fund.\n\n" +
  "Not everyone is pleased. Fishermen complain that the wash of the ferry disturbs their nets near the " +
  "breakwater, and the shop owners on Quay Street fear that passengers will no longer walk past their " +
  "windows. The council has promised to measure the waves for a year and to lower the speed if the nets " +
  "suffer.\n\n" +
  "Early figures suggest that demand is high. More than 9,000 people used the ferry on its first day, and on " +
  "Tuesday morning the queue for the eight o'clock boat reached the tram stop. Lindmark Transit said it " +
  "would add a second ferry in autumn if the numbers hold. A ticket costs 30 crowns, and holders of a " +
  "monthly bus pass travel for nothing.\n\n" +
  "Researchers at the university will study how the line changes the way people move through the city. " +
  "Professor Jonas Weber, who leads the project, expects that one in five car trips across the bridge will " +
  "disappear within two years.";

export const BRIDGE =
  "The Lindmark Bridge is a steel arch bridge over the Horsa river. It was designed by Ingrid Holm and " +
  "opened in 1932. The bridge is 503 metres long and carries eight lanes of traffic. About 160,000 vehicles " +
  "cross it every day. A toll of 4 euros is charged for southbound cars.";

/** Labelled lines, dollars, a table of items, a subtotal before the total. */
export const US_INVOICE = `ACME Tools Inc.
12 Harbour Road, Springfield
billing@acme.example | www.acme.example | (555) 010-4477

INVOICE

Invoice number: INV-2041
Invoice date: March 14, 2026
Due date: 04/13/2026

Bill to:
Jane Doe
Example Ltd

Description          Qty   Unit price   Amount
Widget, large        2     100.00       200.00
Widget, small        10    103.45       1,034.50

Subtotal: $1,234.50
Sales tax 8%: $98.76
Total: $1,333.26

Thank you for your business!`;

/** German labels, dates and numbers. */
export const GERMAN_INVOICE = `Rechnung Nr. 2026-0077
Rechnungsdatum: 14.03.2026
Kunde: Max Mustermann

Zwischensumme 1.234,50 EUR
MwSt. 19% 234,56 EUR
Gesamtbetrag 1.469,06 EUR

Fragen an rechnung@muster.example`;

/** A letter without labels or lines. */
export const PROSE_INVOICE =
  "Dear customer, please find below invoice #77 from Northwind Traders Ltd. issued on 3 May 2026. The amount " +
  "due is EUR 2,450.00 including tax of EUR 450.00 (subtotal EUR 2,000.00), payable by 2026-06-02. " +
  "Questions? Write to accounts@northwind.example or call +44 20 7946 0018.";

/** Labels above their values, the total before the items, ISO dates, pounds. */
export const STACKED_INVOICE = `Hollow Pine Studio

Invoice No.
HP/2026/118
Date of issue
2026-01-31
Amount due
£980.50

For: Lena Brandt, lena.brandt@mail.example

Logo design ............ £600.00
Business cards ......... £380.50`;

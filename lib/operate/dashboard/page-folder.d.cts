/** The folder with the dashboard's page. */
export declare const pageFolder: string
/** The folder with the files of uPlot, which draws the charts. Throws when it is not installed. */
export declare function chartFolder(): string
